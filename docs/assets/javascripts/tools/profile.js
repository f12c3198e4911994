// The profile reader: analyzes a reader's traces and snapshots as `figgen profile` and
// `figgen memory-snapshot` do, in a worker next to the page. Nothing is sent anywhere, and
// names in a file are treated as text, never as markup.

import { addressWriter } from "./address.js";
import { button, el, field, liveRegion, mountTool, perFrame, released, selectField } from "./dom.js";
import { copyText, download } from "./files.js";
import { carry, jobIn } from "./job_carried.js";
import { lanesPicture } from "./profile_lanes.js";
import { memoryPicture } from "./profile_memory.js";
import { profileText, snapshotText } from "./profile_words.js";
import { bytes, percent, quantity } from "./quantities.js";

const SHARES = [["computing_s", "computing"], ["exposed_s", "exposed"], ["copies_s", "copies"], ["launch_s", "not launched"], ["idle_s", "idle"]];
const SECTIONS = {
  parts: ["A step, rank by rank", "Shares of a step, rank by rank"],
  calls: ["Communication", "Calls of that rank"],
  kinds: ["What the kernels do", "Kernels by kind"],
  savings: ["What would save time", "Changes by time saved"],
  gaps: ["Launched late", "Operators launched late"],
  modules: ["Modules", "Time by module"],
  waits: ["Who waits for whom", "Waiting for others"],
  against: ["Compared with the other recording", "Causes of the difference"],
};
const MOST_ROWS = 200; // of a table; the download has all rows
const LONGEST_NAME = 120;
const ACCEPTED = ".json,.gz,.pickle,.pkl,.log,.txt,.out,.err";
const RECORDED = /\.(json|gz|pickle|pkl)$/i;
const LARGEST_LOG = 1e6; // of a log, which is read here and not in the worker
const LARGEST_FILE = 200e6; // in total; the worker refuses more

/** Builds the tool in `root`; `pages` has the page about each part of a step, `examples` the site's files. */
function build(root, signal, { pages, examples }) {
  const { region, say } = liveRegion();
  const writeAddress = addressWriter(signal);
  let [worker, given, others, came] = [null, [], [], new AbortController()];
  const input = el("input", {
    type: "file", multiple: true, name: "files", accept: ACCEPTED,
    // Emptied first, so that the same file can be chosen again.
    on: { change: () => read([...input.files]), click: () => { input.value = ""; } },
  });
  const against = el("input", {
    type: "file", multiple: true, name: "against", accept: ".json,.gz",
    on: { change: () => { others = [...against.files]; read(given); } },
  });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Reading" });
  const far = el("span");
  const progress = el("div", { class: "profile-progress", hidden: true }, bar, far, button("Stop", () => { stop(); say("Stopped"); }));
  const messages = el("div", { class: "profile-messages" });
  const answer = el("div", { class: "profile-answer" });
  const drop = el("div", { class: "profile-drop" },
    field("Traces of one or several ranks, one snapshot of the allocator, or a log", input, `drop them here or choose them: .json, .pickle, compressed or not, up to ${bytes(LARGEST_FILE)} together, or paste PyTorch's out-of-memory message; they stay on this machine`),
    el("details", { class: "tool-asked" }, el("summary", {}, "Compare with other steps"),
      field("Traces of the steps to compare with", against, "from before a change, or from a faster rank")),
    el("div", { class: "tool-actions" }, button("Read a recorded example", example)));
  const answered = el("p", { class: "tool-sentence" });
  root.replaceChildren(answered, drop, progress, messages, answer, region);

  for (const kind of ["dragenter", "dragover"]) {
    root.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("is-over");
    }, { signal });
  }
  root.addEventListener("dragleave", (event) => {
    if (!root.contains(event.relatedTarget)) drop.classList.remove("is-over");
  }, { signal });
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("is-over");
    read([...event.dataTransfer.files]);
  }, { signal });
  signal.addEventListener("abort", stop);

  function stop() {
    worker?.terminate();
    worker = null;
    progress.hidden = true;
    root.removeAttribute("aria-busy");
  }

  async function example() {
    const before = given;
    try {
      const files = examples.map(async (path) => {
        const found = await fetch(new URL(`../../examples/${path}`, import.meta.url), { signal });
        if (!found.ok) throw new Error(found.statusText);
        return new File([await found.blob()], path);
      });
      const found = await Promise.all(files);
      if (given === before) read(found); // otherwise the reader has chosen files meanwhile
    } catch {
      if (!signal.aborted && given === before) tell("The example could not be loaded; try again when you are connected");
    }
  }

  addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (text.trim() && !event.target.closest?.("input, textarea")) read([new File([text], "what you pasted")]);
  }, { signal });

  // What a log says, such as PyTorch's out-of-memory message, with the converter's and the modeler's reader.
  async function readText(file) {
    const [text, { logParts }] = await Promise.all([file.text(), import("./profile_log.js")]);
    await released();
    if (given[0] !== file) return;
    const shown = logParts(text) ?? (await import("./elsewhere.js")).elsewhere(text);
    await released();
    if (given[0] !== file) return;
    if (!shown) return tell(`${file.name}: expected a trace, a snapshot, step lines of training or PyTorch's out-of-memory message`);
    answered.replaceChildren();
    answer.replaceChildren(...shown);
    say(shown[0].textContent);
  }

  function read(files, device = null) {
    stop();
    messages.replaceChildren();
    if (!files.length) return;
    given = files;
    if (files.length === 1 && files[0].size <= LARGEST_LOG && !RECORDED.test(files[0].name)) return void readText(files[0]);
    root.setAttribute("aria-busy", "true");
    [bar.value, far.textContent, progress.hidden] = [0, "", false];
    worker = new Worker(new URL("profile_worker.js", import.meta.url), { type: "module" });
    const mine = worker;
    worker.addEventListener("message", async ({ data }) => {
      if (data.progress !== undefined) {
        bar.value = data.progress;
        far.textContent = percent(data.progress, 0);
        return;
      }
      await released();
      if (mine !== worker) return;
      stop();
      if (data.error) refuse(data.error, files);
      else show(data.found);
    });
    worker.addEventListener("error", () => { stop(); tell("The files could not be read; reload the page to try again"); });
    worker.postMessage({ files, against: others, device });
  }

  // A small file that is not a recording may be a model or a job.
  async function refuse(problem, files) {
    const [file] = files;
    const other = files.length === 1 && file.size <= LARGEST_LOG ? (await import("./elsewhere.js")).elsewhere(await file.text()) : null;
    if (given[0] !== file) return;
    if (!other) return tell(problem);
    answered.replaceChildren();
    answer.replaceChildren(...other);
    say(other[0].textContent);
  }

  function tell(problem) {
    for (const one of [answered, answer]) one.replaceChildren();
    messages.replaceChildren(el("div", { class: "tool-message is-bad" }, el("p", {}, `${problem.slice(0, 600)}.`)));
    say(problem.slice(0, 600));
  }

  function show({ profile, snapshot }) {
    came.abort();
    came = new AbortController();
    answer.replaceChildren(...(profile ? profileParts(profile) : []), ...(snapshot ? snapshotParts(snapshot) : []));
    const told = profile ? profile.answer.text : snapshot.sentence ?? snapshot.kinds[0];
    const about = profile ? pages[profile.answer.page] : snapshot.page && { page: snapshot.page, title: TITLES[snapshot.page] ?? "Out of memory" };
    answered.replaceChildren(told, ...(about ? [" About it: ", el("a", { href: `../../${about.page}/` }, about.title), "."] : []));
    say(told);
  }

  function profileParts(profile) {
    const { sections, data, lanes, kinds } = profile;
    const over = lanesPicture(lanes, kinds, AbortSignal.any([signal, came.signal]));
    const shown = sections.map((one) => {
      const [heading, caption] = SECTIONS[one.name];
      const first = one.name === "parts"
        ? [bars(data.ranks)]
        : [one.title ? el("p", {}, cut(one.title)) : null];
      const notes = one.notes.map((note) => el("p", { class: one.rows.length ? "profile-note" : null }, cut(note, 400)));
      return section(heading, first, one.rows.length ? table(caption, one.rows, one.left) : null, notes,
        one.name === "waits" ? el("p", { class: "profile-note" }, "A collective ends for all ranks at the same moment, so the rank that spends the least time in it arrived last.") : null);
    });
    if (over) shown.splice(1, 0, section("Over time", over));
    return [...shown, ...besideModel(profile)];
  }

  // What the modeler computes for one of its addresses, part by part; and the whole as a download.
  function besideModel(profile) {
    const { sections, data, worst, setup } = profile;
    let beside = null;
    const found = el("div", { class: "profile-beside", "aria-live": "polite" });
    const address = el("input", { type: "text", name: "address", autocomplete: "off", spellcheck: "false", maxlength: 4000, value: broughtJob(), on: { input: () => compare() } });
    const compare = perFrame(async () => {
      const { besideModel: compared, modelled } = await import("./profile_beside.js");
      const typed = address.value.trim();
      const { step, error, problems } = typed ? await modelled(typed) : {};
      if (address.value.trim() !== typed) return;
      beside = step ? compared(worst, step) : null;
      const wrong = error ? [error.message] : (problems ?? []);
      found.replaceChildren(
        ...wrong.map((text) => el("div", { class: "tool-message is-warning" }, el("p", {}, `${text}.`))),
        beside ? el("p", {}, cut(beside.section.title)) : "",
        beside ? table("Recorded and predicted", beside.section.rows, 2, linked)[0] : "");
    });
    const from = button("Take GPU and groups from the trace", async () => {
      const { queryOf } = await import("./profile_beside.js");
      const query = queryOf(setup);
      if (!query) return say("The trace does not say which GPU it ran on");
      address.value = query;
      compare();
      writeAddress(new URLSearchParams(carry(new URLSearchParams(query))).toString());
      return say("Taken from the trace");
    });
    if (address.value) compare();
    return [
      section("Compared with the model",
        field("A configuration of the modeler", address, "its address: see “Link to this configuration” there"),
        el("div", { class: "tool-actions" }, from), found),
      taking("profile", () => profileText(profile.answer.text, [...sections, ...(beside ? [beside.section] : [])]), () => (beside ? { ...data, model: beside.data } : data)),
    ];
  }
  const titles = new Map(Object.values(pages).map(({ page, title }) => [page, title]));
  const linked = (text) => (titles.has(text) ? el("a", { href: `../../${text}/` }, titles.get(text)) : cut(text));

  function snapshotParts(snapshot) {
    const { devices, data, rows, kinds, refusals } = snapshot;
    const { device, peak, history } = data;
    const choice = devices.length > 1
      ? selectField("GPU", { name: "device", value: String(device), options: devices.slice(0, 1024).map((one) => [String(one), String(one)]), onChange: (one) => read(given, Number(one)) }).box
      : null;
    return [
      section(`Memory of GPU ${device}`, choice,
        refusals.map((text) => el("div", { class: "tool-message is-bad" }, el("p", {}, text))),
        peak ? memoryPicture(history, peak) : null,
        table("Parts of the reserved memory", rows, 1),
        kinds.map((text) => el("p", {}, `${text}.`)),
        el("p", { class: "profile-note" }, "What to do about each: ", el("a", { href: "../../guide/out-of-memory/" }, "Out of memory"), ".")),
      taking("memory-snapshot", () => snapshotText(snapshot), () => data),
    ];
  }

  const taking = (name, text, data) =>
    el("div", { class: "tool-actions" },
      button("Copy as text", async () => say((await copyText(text())) ? "Copied" : "Select it and copy")),
      button("Text", () => download(`${name}.txt`, text(), "text/plain"), { "data-file": `${name}.txt` }),
      button("JSON", () => download(`${name}.json`, `${JSON.stringify(data(), null, 1)}\n`, "application/json"), { "data-file": `${name}.json` }));
}

// The job that the address brings along, as one of the modeler's.
function broughtJob() {
  const job = jobIn(location.search).toString();
  return job && `?${job}`;
}

const TITLES = { "guide/zero-fsdp": "ZeRO and FSDP", "guide/memory": "Memory budgets" };
const cut = (name, longest = LONGEST_NAME) => (name.length > longest ? `${name.slice(0, longest)}…` : name);
const section = (title, ...content) => el("section", { class: "tool-section" }, el("h2", {}, title), content);

function table(caption, [head, ...rows], left, write = (text) => cut(text)) {
  const cell = (tag) => (text, at) => el(at ? "td" : tag, { class: at < left ? null : "num", scope: at ? null : "row" }, write(text));
  const more = rows.length - MOST_ROWS;
  return [
    el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": caption },
      el("table", { class: "tool-table profile-table" },
        el("caption", { class: "tool-live" }, caption),
        el("thead", {}, el("tr", {}, head.map((text, at) => el("th", { scope: "col", class: at < left ? null : "num" }, text)))),
        el("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => el("tr", {}, row.map(cell("th"))))))),
    more > 0 ? el("p", { class: "profile-note" }, `${more} more are in the files below.`) : null,
  ];
}

// A bar for each rank, with the parts that add up to its step; the table has the same numbers.
function bars(ranks) {
  const part = (name, key, share) => el("span", { class: `profile-${key}`, style: `flex-grow: ${share}`, title: `${name} ${percent(share)}` });
  return el("div", { class: "profile-bars", "aria-hidden": "true" },
    el("div", { class: "profile-key" }, SHARES.map(([key, name]) => el("span", {}, el("i", { class: `profile-${key}` }), name))),
    ranks.slice(0, MOST_ROWS).map((rank) => [
      el("span", {}, cut(rank.name)),
      el("div", { class: "profile-bar" }, SHARES.filter(([key]) => rank[key] > 0).map(([key, name]) => part(name, key, rank[key] / rank.wall_s))),
    ]));
}

mountTool("#profile", build);
