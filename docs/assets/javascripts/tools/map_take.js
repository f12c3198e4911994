// Exports of the rank map: the link, files, and text for a launcher.

import { bringBox } from "./bring.js";
import { button, el, field } from "./dom.js";
import { copyText, download, showCommand } from "./files.js";
import { launchOf } from "./launch.js";
import { afterFrame } from "./painting.js";

const LAUNCHERS = Object.entries({ megatron: "Megatron-LM", pytorch: "PyTorch", deepspeed: "DeepSpeed", torchtitan: "torchtitan", hostfile: "Hostfile", rankfile: "Rankfile" });
const NOTHING = { text: "", note: "This layout can't be placed, so there's nothing to launch." };
const LOADING = Symbol("loading");
const UNPLACED = "The text was read, but its layout can't be placed: see above.";

/** The command line that prints the groups. */
export function commandLine({ nodes, gpus, tp, cp, ep, etp, pp, order }) {
  const given = [
    ["nodes", nodes],
    ["gpus-per-node", gpus],
    ["tp", tp],
  ];
  for (const [name, size] of [
    ["cp", cp],
    ["ep", ep],
    ["pp", pp],
  ])
    if (size !== 1) given.push([name, size]);
  if (etp !== null) given.push(["etp", etp]);
  if (order !== "megatron") given.push(["order", order]);
  return `figgen ranks ${given.map(([name, value]) => `--${name} ${value}`).join(" ")} --json`;
}

/**
 * Returns { element, brought, update(state, picture) }; `picture` is null for a state that cannot be placed.
 * `load(changes, job)` takes a configuration that was pasted, with the job beyond the layout, and says whether it can be placed; `mark(ranks)`
 * marks ranks that pasted hosts or ranks have elsewhere.
 */
export function makeTakeaway(load, mark, say, signal) {
  let [state, picture, chosen, hosts] = [null, null, "megatron", null];
  const name = () => `rank-map-${picture.parallel.world_size}`;
  const copying = (text) => async (event) => {
    const told = (await copyText(text())) ? "Copied" : "Select it and copy";
    const [pressed, before] = [event.currentTarget ?? event.target, event.target.textContent];
    say(told);
    pressed.textContent = told;
    setTimeout(() => {
      pressed.textContent = before;
    }, 1500);
  };
  const link = el("input", { readonly: true, on: { focus: () => link.select() } });
  const share = el(
    "div",
    { class: "map-share" },
    field("Link to this configuration", link),
    button(
      "Copy link",
      copying(() => link.value),
    ),
  );
  const files = el("div", { class: "tool-actions" },
    Object.entries({ svg: "SVG", png: "PNG", json: "Groups, JSON", csv: "Groups, CSV" }).map(([kind, label]) =>
      button(label, async () => {
        const { FILES } = await import("./map_files.js");
        const [write, type] = FILES[kind];
        download(`${name()}.${kind}`, write(picture), type);
      }, { "data-file": kind })),
  );
  const prints = el("p", { class: "map-note" }, "This command prints the JSON:");
  const command = el("pre", { class: "tool-code map-command", tabindex: 0 });

  const code = el("pre", { class: "tool-code", tabindex: 0, "aria-label": "Launch settings" });
  const note = el("p", { class: "map-note" });
  const tabs = el(
    "div",
    { class: "tool-actions", role: "group", "aria-label": "Launch settings for" },
    LAUNCHERS.map(([key, label]) =>
      button(
        label,
        () => {
          chosen = key;
          showLaunch();
        },
        { "data-launcher": key },
      ),
    ),
  );
  const copy = button(
    "Copy",
    copying(() => code.textContent),
  );
  function showLaunch() {
    for (const tab of tabs.children)
      tab.setAttribute("aria-pressed", String(tab.dataset.launcher === chosen));
    const found = picture ? launchOf(chosen, picture.parallel, hosts) : NOTHING;
    showCommand(code, found.text);
    code.hidden = copy.hidden = !found.text;
    note.textContent = found.note;
  }

  let readAs = null; // the layout of the answer
  const brought = bringBox(async ({ text, answers, again }) => {
    const { askFor, placesOf, takeLayout, takenRows, told } = await import("./map_taken.js");
    const places = picture && placesOf(text, picture.parallel);
    if (places) {
      hosts = places.hosts;
      mark(places.ranks);
      showLaunch();
      return places.rows.map(told);
    }
    const { changes, job, found, problems } = takeLayout(text, answers);
    const ready = changes && !found.asked.length;
    const loaded = ready ? [load(changes, job) ? ["good", "The configuration was loaded."] : ["warning", UNPLACED]] : [];
    readAs = ready && LOADING;
    const bad = problems.map((problem) => ["bad", `${problem}${/[.?]$/.test(problem) ? "" : "."}`]);
    return [...[...bad, ...loaded, ...(found ? takenRows(found) : [])].map(told), ...askFor(found?.asked ?? [], again)];
  }, signal, { summary: "Bring your job: paste or drop a script, a configuration or a list of hosts" });
  const element = el(
    "div",
    { class: "map-take" },
    el(
      "section",
      {},
      el("h2", {}, "Take it away"),
      share,
      files,
      prints,
      command,
    ),
    el(
      "section",
      {},
      el("h2", {}, "Launch it"),
      tabs,
      code,
      el("div", { class: "tool-actions" }, copy),
      note,
    ),
  );
  const showLaunchSoon = afterFrame(showLaunch);
  function update(now, shown) {
    [state, picture] = [now, shown];
    for (const one of [...files.children, ...tabs.children]) one.disabled = !picture;
    prints.hidden = command.hidden = !picture;
    showCommand(command, commandLine(state));
    if (readAs === LOADING) readAs = command.textContent;
    else if (readAs && readAs !== command.textContent) {
      // The layout differs from the one that was read.
      brought.forget();
      readAs = null;
    }
    showLaunchSoon();
  }
  return {
    element,
    brought: brought.element,
    update,
    setLink: (address) => {
      link.value = address;
    },
  };
}
