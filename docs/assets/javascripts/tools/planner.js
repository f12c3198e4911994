// The planner: all layouts of a job, tried beside the page; one state, from the address or the form.

import { InputError } from "../engine/errors.js";
import { mapped } from "../engine/records.js";
import { fit_words } from "../models/memory/fit_probability.js";
import { MFU_LABEL } from "../models/step/compute.js";
import { bringBox } from "./bring.js";
import { button, el, liveRegion, mountTool, pause, perFrame, released, selectField, whenNear } from "./dom.js";
import { modelerForm } from "./modeler_form.js";
import { ownFrom } from "./modeler_hardware.js";
import { OWN, presetsOf } from "./modeler_state.js";
import { note } from "./modeler_table.js";
import { planGroups } from "./planner_fields.js";
import { frontPicture } from "./planner_picture.js";
import { tellJob } from "./job_record.js";
import { askedJob, fromQuery, jobOf, planChoices, planSchema, questionOf, searchOf, toAddress, ways } from "./planner_state.js";
import { layoutTable, losesBy, nameOf } from "./planner_table.js";
import { bytes, percent, plainNumber, seconds, span } from "./quantities.js";
import { addressWriter } from "./address.js";
import { served_shape } from "../scenarios/tools/served_shape.js";
import { readAddress } from "./state.js";
import { sequenceIn } from "./modeler_options.js";

const [FIRST_SHOWN, MORE_SHOWN] = [12, 100];
const WAIT_MS = 250; // after the last change, before a search begins
const TOO_MUCH = {
  state: "weights, gradients and optimizer state alone don't fit",
  activations: "too large with activations",
  buffers: "too large with the temporary buffers of layers, gathers and messages",
  allocator: "too large with the allocator's overhead",
};

const COUNTING = "The layouts are being counted.";

/** Builds the tool in `root`, in pieces between which a phone can answer its reader. */
async function build(root, signal, catalog) {
  await pause(signal);
  const schema = planSchema(catalog);
  const writeAddress = addressWriter(signal);
  const { region, say } = liveRegion();
  let { state, problems } = await readAddress(location.search, schema, (query) => fromQuery(schema, catalog, query), sequenceIn(catalog));
  let [worker, waiting, shown, every, found, drawn, width] = [null, 0, FIRST_SHOWN, false, null, false, 0];
  const bad = new Map(); // field → what is invalid in it
  const change = (changes) => {
    problems = [];
    state = { ...state, ...changes };
    render();
  };
  const form = modelerForm(schema, catalog, {
    onBad: (key, message) => { tell(key, message); tellProblems(); },
    onChange: (changes) => {
      if ("measured" in changes) load(changes.measured);
      else change(own(changes));
    },
  }, planGroups(catalog));
  await pause(signal);
  const presets = presetsOf(catalog).filter(({ kind }) => kind === "training");
  const preset = selectField("Start with a published job", {
    name: "preset", value: state.preset, options: [["", "none"], ...presets.map(({ name, title }) => [name, title])],
    onChange: (name) => { given = null; brought.forget(); bad.clear(); change(name ? jobOf(schema, catalog, name) : { preset: "" }); },
  });
  form.form.prepend(preset.box);
  const messages = el("div", { class: "plan-messages" });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Search" });
  const far = el("span");
  const progress = el("div", { class: "plan-progress is-idle" }, bar, far, button("Stop", () => { stop(); rest(); }));
  const answered = el("p", { class: "tool-sentence plan-best" }, COUNTING);
  const answer = el("div", { class: "plan-answer" });
  const next = el("div", { class: "plan-next" });
  let steps = null; // what to do with the answer
  // The job of the question, which the reader may have changed since.
  const waysOf = (row, { asked }) => ways(catalog, asked, row);
  const compared = el("div", { class: "plan-compared" });
  const best = layoutTable("The fastest layouts that fit", waysOf, async (rows) => {
    const asked = found;
    const { comparison } = rows.length > 1 ? await import("./planner_compare.js") : {};
    if (asked === found) compared.replaceChildren(...(comparison ? comparison(rows) : []));
  });
  const more = button(`Show ${MORE_SHOWN}`, () => { shown = shown === FIRST_SHOWN ? MORE_SHOWN : FIRST_SHOWN; drawTable(); });
  const variants = button("", () => { every = !every; drawTable(); });
  const figure = el("div", { class: "plan-figure" });
  const front = layoutTable("Time against memory", waysOf);
  const frontBox = el("details", { class: "modeler-more" }, el("summary", {}, "Time against memory as a table"), front.element);
  let goodput = null;
  const failures = el("div");
  whenNear(async () => {
    const { goodputPanel } = await import("./planner_goodput.js");
    goodput = goodputPanel((changes) => { state = { ...state, ...changes }; writeAddress(toAddress(schema, catalog, state)); });
    failures.append(goodput.element);
    if (drawn) goodput.show(state, found);
  }, signal, "600px").observe(failures);
  const section = (title, ...content) => el("section", { class: "tool-section" }, el("h2", {}, title), ...content);
  const sized = el("section", { class: "tool-section plan-sizing", hidden: true }, el("h2", {}, "How many nodes"));
  const results = el("div", { class: "plan-results", hidden: true }, answer,
    section("Fastest layouts", best.element, el("div", { class: "tool-actions" }, more, variants), compared),
    section("Time against memory", figure, frontBox),
    section("With failures: days of the whole training", failures));
  root.replaceChildren(answered, next, el("div", { class: "tool-columns" }, form.form, el("div", { class: "plan-side" }, messages, progress, sized, results)), region);

  const tell = (key, message) => (message === null ? bad.delete(key) : bad.set(key, message));
  // The reader's own hardware starts with the numbers of the previous choice.
  function own(changes) {
    if (![changes.model, changes.chip, changes.nic].includes(OWN)) return changes;
    const { [state.model]: model, [state.chip]: chip, [state.nic]: nic } = { ...catalog.models, ...catalog.accelerators, ...catalog.links };
    const { efficiency, ...numbers } = ownFrom({
      setup: { shape: model && served_shape(mapped(model)) }, capacity_bytes: chip?.memory_bytes, compute_efficiency: 1,
      cluster: {
        peak_flops_per_s: chip?.peaks.bf16 ?? chip?.peaks.fp16, scale_up_bandwidth_bytes_per_s: chip?.scale_up_bandwidth_bytes_per_s,
        network_bandwidth_bytes_per_s: nic?.bandwidth_bytes_per_s / (nic?.per === "node" ? state.gpus : 1),
      },
    }, changes);
    return chip && changes.chip === OWN ? { bw: chip.memory_bandwidth_bytes_per_s / 1e9, ...numbers } : numbers;
  }

  let given = null; // the last file of measure.py, until a job is chosen; it may finish later
  const load = async (text) => {
    given = text;
    try {
      const changes = (await import("./planner_own.js")).measuredChanges(text);
      if (given !== text) return;
      tell("measured", null);
      if (changes) change(changes);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      if (given === text) tell("measured", error.message);
    }
    tellProblems();
  };
  const brought = bringBox(async (job) => {
    const { readPlanJob } = await import("./planner_own.js");
    return job.isLast() && readPlanJob(catalog, state, job, (changes) => { given = null; bad.clear(); change(changes); });
  }, signal);
  form.form.prepend(brought.element);

  const rest = () => progress.classList.add("is-idle");
  let refused = null;
  function tellProblems() {
    const box = (kind, text) => el("div", { class: `tool-message is-${kind}` }, el("p", {}, text));
    messages.replaceChildren(
      ...problems.map((text) => box("warning", `In the address, ${text}.`)),
      ...[...bad.values()].map((message) => box("bad", `${message}.`)),
      ...(refused ? [box("bad", `${refused}.`)] : []));
  }

  function stop() {
    clearTimeout(waiting);
    worker?.terminate();
    worker = null;
    root.removeAttribute("aria-busy");
  }
  signal.addEventListener("abort", stop);

  const render = perFrame(() => signal.aborted || renderNow());
  function renderNow() {
    stop();
    refused = null;
    form.sync(state, { setup: null });
    preset.select.value = state.preset;
    tellProblems();
    writeAddress(toAddress(schema, catalog, state));
    tellJob(askedJob(catalog, state));
    results.classList.add("is-stale");
    answered.textContent = COUNTING;
    root.setAttribute("aria-busy", "true");
    waiting = setTimeout(search, WAIT_MS, state);
  }

  function search(asked) {
    worker = new Worker(new URL("planner_worker.js", import.meta.url), { type: "module" });
    const mine = worker;
    const [question, counts] = [questionOf(asked), []];
    const linkOf = ({ nodes, global_batch }) => `?${toAddress(schema, catalog, { ...asked, ask: "", nodes, global_batch })}`;
    sized.hidden = !question;
    const panel = question && import("./planner_sizing.js").then(({ sizingPanel }) => sizingPanel(sized));
    worker.addEventListener("message", async ({ data }) => {
      if (data.progress) return tellProgress(data.progress);
      await released();
      if (mine !== worker) return;
      if (data.sized) {
        counts.push(data.sized);
        return (await panel).show(question, counts, data.sized.best, false, linkOf);
      }
      if (data.sizedAll !== undefined) {
        const { show, sentence } = await panel;
        show(question, counts, data.sizedAll, true, linkOf);
        answered.textContent = sentence();
        say(sentence());
        if (data.sizedAll) asked = { ...asked, nodes: data.sizedAll, global_batch: counts[0].global_batch };
        else { stop(); rest(); results.hidden = true; drawn = false; }
        return;
      }
      if (data.early) return sized.hidden && tellEarly(data.early, asked);
      stop();
      rest();
      if (data.error) refused = data.error;
      else take({ ...data.found, asked });
      tellProblems();
    });
    worker.addEventListener("error", () => { stop(); refused = "The search could not be started; reload the page to try again"; tellProblems(); });
    worker.postMessage({ catalog, choices: planChoices(catalog, asked), search: searchOf(asked), question });
  }

  // Shown before the others are counted; the rest of an earlier answer stays until then.
  function tellEarly({ row, interval }, asked) {
    answered.replaceChildren(...wordsOf(row, interval), " The other layouts are being counted.");
    say(answered.textContent);
    offer(ways(catalog, asked, row));
  }
  const offer = (found) => {
    steps ??= import("./planner_next.js").then(({ nextSteps }) => nextSteps(next, catalog, say));
    steps.then(({ show }) => show(found));
  };

  function tellProgress({ done, of, layouts, fitting }) {
    progress.classList.remove("is-idle");
    bar.value = done / of;
    far.textContent = `${plainNumber(layouts)} layouts tried, ${plainNumber(fitting)} fit`;
  }

  /** Shows the results, in pieces between which a phone can respond to its reader. */
  async function take(given) {
    found = given;
    const [low, high] = found.residuals;
    const fastest = found.best[0];
    const rows = (layouts) => layouts.map((one, at) => ({
      place: at + 1, ...one, apart: one.step_s * low > fastest.step_s * high,
      by: losesBy(one, fastest)?.[1],
    }));
    found.rows = rows(found.best);
    found.meshRows = rows(found.meshes);
    found.frontRows = rows(found.front);
    if (fastest) tellJob(ways(catalog, given.asked, fastest, found).job);
    offer(fastest ? waysOf(fastest, given) : null);
    results.hidden = false;
    results.classList.remove("is-stale");
    const parts = [...results.querySelectorAll("section")];
    // Each appears with its contents, so that nothing on the screen is pushed away.
    if (!drawn || !found.fitting) for (const part of parts) part.hidden = true;
    drawn = Boolean(found.fitting);
    tellAnswer();
    if (!found.fitting) return;
    for (const [at, draw] of [drawTable, drawFigure, () => goodput?.show(state, given), () => front.show(given.frontRows, given)].entries()) {
      await pause(signal);
      if (found !== given) return;
      if (parts[at]) parts[at].hidden = false;
      draw();
    }
  }

  function drawTable() {
    const rows = every ? found.rows : found.meshRows;
    best.show(rows.slice(0, shown), found);
    more.textContent = shown === FIRST_SHOWN ? `Show ${Math.min(MORE_SHOWN, rows.length)}` : "Show fewer";
    more.hidden = rows.length <= FIRST_SHOWN;
    variants.textContent = every ? "Show the fastest of each mesh" : "Show every variant of a mesh";
  }

  function drawFigure() {
    width = figure.clientWidth;
    figure.replaceChildren(frontPicture(found, Math.max(300, width || 600), (row) => `../modeler/?${waysOf(row, found).modeler}`));
  }
  // Its own height changes with its contents.
  const watcher = new ResizeObserver(() => found?.fitting && width && figure.clientWidth && width !== figure.clientWidth && drawFigure());
  watcher.observe(figure);
  signal.addEventListener("abort", () => watcher.disconnect());

  function wordsOf(row, interval) {
    const likely = row.chance === null ? "" : ` It ${fit_words(row.chance)}.`;
    return [el("strong", {}, nameOf(row)), ` takes ${seconds(row.step_s)} (${span(...interval.map((factor) => row.step_s * factor))}), ${percent(row.mfu)} ${MFU_LABEL}, ${bytes(row.memory_bytes)} of the fullest GPU.${likely}`];
  }

  function tellAnswer() {
    const { layouts, fitting, refused: why, least_bytes, told, global_batch, batch_assumed, sequence, interval_of, interval, took_s } = found;
    const batch = `${plainNumber(global_batch)} sequences of ${plainNumber(sequence)} tokens per step${batch_assumed ? " (assumed)" : ""}`;
    const counted = `${plainNumber(layouts)} layouts of ${plainNumber(found.gpus)} GPUs tried in ${seconds(took_s)}, ${plainNumber(fitting)} fit; ${batch}.`;
    const reasons = Object.entries(why).filter(([, count]) => count).map(([name, count]) => el("li", {}, `${plainNumber(count)}: ${TOO_MUCH[name]}`));
    const lines = [note(counted)];
    // If the question is a number of nodes, the tool answers that first.
    const head = (...words) => (sized.hidden ? answered.replaceChildren(...words) : lines.unshift(el("p", { class: "plan-best" }, ...words)));
    if (fitting) {
      const [fastest] = found.rows;
      head(...wordsOf(fastest, interval));
      lines.push(note(`${plainNumber(told)} are too close to the fastest to call, marked ≈: their 80% intervals (${interval_of}) overlap.`));
    } else head(`No layout fits: the smallest needs ${bytes(least_bytes)}, and up to ${bytes(found.most_bytes)} fit with a chance of ${plainNumber(found.asked.chance, 3)}%. Use more nodes, or fix fewer sizes.`);
    lines.push(...found.notes.map(note));
    if (found.asked.factor) lines.push(note(`All times are ${plainNumber(found.asked.factor, 3)} × the prediction, as you asked; intervals are for layouts other than the one you measured.`));
    if (found.asked.measured) lines.push(note("Uses the rates that measure.py measured."));
    answer.replaceChildren(...lines, ...(reasons.length ? [el("details", { class: "modeler-more" }, el("summary", {}, "Why other layouts don't fit"), el("ul", {}, reasons))] : []));
    say(answered.textContent);
  }
  renderNow();
}

mountTool("#planner", build);
