// The bandwidth and efficiency modeler: one or two configurations, from the address or the form;
// everything that is shown follows from them.

import { el, liveRegion, mountTool, pause, perFrame, released } from "./dom.js";
import { bringBox } from "./bring.js";
import { topBar } from "./modeler_bar.js";
import { fieldProblems } from "./modeler_problems.js";
import { modelerForm, stepOf } from "./modeler_form.js";
import { evaluate } from "./modeler_model.js";
import { InputError } from "../engine/errors.js";
import { ownFrom } from "./modeler_hardware.js";
import { results } from "./modeler_results.js";
import { FIRST, addressKinds, fromQuery, jobRecord, ofPreset, queryOf, replicasOf, schemaOf } from "./modeler_state.js";
import { tellJob } from "./job_record.js";
import { addressWriter } from "./address.js";
import { defaults, readAddress } from "./state.js";
import { sequenceIn } from "./modeler_options.js";
import { sentence } from "./modeler_answer.js";

/** Builds the tool in `root`, in pieces between which a phone can answer its reader. */
async function build(root, signal, catalog) {
  const schema = schemaOf(catalog);
  const writeAddress = addressWriter(signal);
  const first = { ...defaults(schema), ...FIRST };
  let { a, b, problems } = await readAddress(location.search, addressKinds(schema), (query) => fromQuery(schema, catalog, query), sequenceIn(catalog));
  // An invalid address is replaced by the defaults, with suggestions; next to a valid first configuration,
  // an invalid second one is left in the form to be corrected.
  // A state is never changed, only replaced.
  const known = new WeakMap();
  const evaluated = (state, base) => evaluate(catalog, state, base);
  const computed = (state) => known.get(state) ?? known.set(state, evaluated(state)).get(state);
  const isBad = (state) => state && computed(state).error;
  await pause(signal);
  const refused = isBad(a) ? [computed(a)] : [];
  let [at, found] = [isBad(b) && !refused.length ? 1 : 0, []];
  if (refused.length) [a, b] = [first, isBad(b) ? null : b];
  const states = () => (b ? [a, b] : [a]);
  const bad = fieldProblems();

  const change = (changes, index = at) => {
    problems = [];
    refused.length = 0;
    const next = { ...(index ? b : a), ...changes };
    if (index) b = next;
    else a = next;
    render();
  };
  const restart = (changes) => {
    given = held = null;
    bad.clear();
    change(changes);
  };
  const changeAll = (state) => {
    brought.forget();
    restart(state);
  };
  const chooseSmall = (changes) => changeAll({ ...first, ...changes });
  const choosePreset = (name) =>
    changeAll(name ? { ...defaults(schema), ...ofPreset(catalog, name), preset: name } : first);

  const isUntouched = (state) => queryOf(schema, catalog, state) === (state.preset && `preset=${state.preset}`);
  const publishedOf = (state) => (state.preset && isUntouched(state) ? publishedBy(catalog.presets[state.preset]) : null);

  const { region, say } = liveRegion();
  await pause(signal);
  const shareOf = (state) => replicasOf(state) * state.microbatch_size;
  const form = modelerForm(schema, catalog, {
    shareOf: (state) => (Number.isInteger(shareOf(state)) ? shareOf(state) : 1),
    onBad: (key, message, offers) => {
      if (key === "global_batch" && message) held = null;
      bad.set(key, message, offers);
      showMessages();
    },
    onChange(changes) {
      if ("hold" in changes) hold = changes.hold;
      else if ("measured" in changes) reading(changes.measured);
      else apply(found[at].setup ? ownFrom(found[at].job, changes) : changes);
    },
  });
  let given = null; // the last file of measure.py, until the reader goes on; it may finish later
  const reading = async (text) => {
    given = text;
    try {
      const changes = (await import("./measured_file.js")).measuredChanges(text);
      if (given !== text) return;
      bad.set("measured", null);
      if (changes) change(changes);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      if (given === text) bad.set("measured", `${error.message}.`);
    }
    showMessages();
  };
  // A script, a configuration, a config.json or a log, until the reader goes on.
  const brought = bringBox(async (job) => {
    const [{ logOf }, { readJob }] = await Promise.all([import("./modeler_log.js"), import("./modeler_taken.js")]);
    return job.isLast() && (logOf(job.text, plainly(), changeStep, ask)
      ?? readJob(catalog, states()[at], job, restart));
  }, signal);
  form.form.prepend(brought.element);
  const forget = () => {
    given = held = null;
    brought.forget();
  };
  // The global batch that is kept while the layout changes: the last answer's, or one typed since.
  let [hold, held] = [true, null];
  const changeBatch = (size) => {
    held = size;
    const share = shareOf(states()[at]);
    const microbatches = Number.isInteger(share) ? bad.batch(size, share) : null;
    if (microbatches === null) showMessages();
    else change({ microbatches });
  };
  // The factor that scales the job's time to the reader's measurement.
  const changeStep = (measured) => {
    const plain = plainly();
    if (plain.step) change({ factor: measured === null ? null : Number((measured / stepOf(plain)).toPrecision(7)) });
  };
  // `changes` with the number of microbatches that keeps the batch, or comes nearest to it, which is
  // reported; an invalid layout has none.
  const holding = (changes) => {
    const [before, share] = [states()[at], { ...states()[at], ...changes }].map(shareOf);
    const kept = share === before && found[at].setup && !bad.found.has("global_batch");
    if (!hold || held === null || kept || "microbatches" in changes || !Number.isInteger(share)) return changes;
    const near = Math.max(1, Math.round(held / share));
    bad.batch(held, share);
    return { ...changes, microbatches: near };
  };
  const apply = (changes) => {
    if ("microbatches" in changes) bad.set("global_batch", null);
    if ("step_time" in changes) changeStep(changes.step_time);
    else if ("global_batch" in changes) changeBatch(changes.global_batch);
    else change(holding(changes));
  };
  const choose = (index) => {
    at = index;
    forget();
    bad.clear();
    render();
  };
  const bar = topBar(catalog, { choosePreset, chooseSmall, compare, choose });
  const brief = el("p", { class: "modeler-brief", "aria-hidden": "true" });
  const answered = el("p", { class: "tool-sentence" });
  form.form.append(brief);
  const said = el("div", { class: "modeler-messages" });
  // Judges a measured speed, on request.
  let verdict = null;
  const plainly = (changes) => evaluated({ ...states()[at], factor: null, ...changes });
  const ask = async () => (verdict ??= import("./modeler_verdict.js").then(({ verdictBox }) => verdictBox(judged, catalog, plainly)));
  const judged = el("details", { class: "tool-asked", id: "is-my-number-good", on: { toggle: ask } }, el("summary", {}, "Is my number good?"));
  const shown = results({
    signal,
    say,
    choose,
    apply: change,
    evaluate: evaluated,
    catalog,
  });
  await pause(signal);
  shown.details.prepend(judged);
  root.replaceChildren(
    answered,
    bar.element,
    el(
      "div",
      { class: "modeler-columns" },
      el("div", { class: "modeler-top" }, said, shown.answer),
      form.form,
      shown.details,
    ),
    region,
  );
  // The derivations of numbers load when the first one is pressed, or left by an arrow key.
  let lines = null;
  const asked = async (event) => {
    const number = event.target.closest?.("[data-how]");
    const arrow = event.key?.startsWith("Arrow");
    if (!number || (event.key && !arrow)) return;
    if (arrow && number.closest("[data-numbers]")) event.preventDefault();
    lines ??= import("./modeler_popover.js").then(({ workedLines }) => workedLines(root, shown.at, signal));
    const { press, goOn } = await lines;
    (arrow ? goOn : press)(number, event.key);
  };
  for (const name of ["click", "keydown"]) root.addEventListener(name, asked, { signal });

  function compare() {
    b = b ? null : { ...a };
    at = b ? 1 : 0;
    forget();
    render();
  }

  async function showMessages() {
    const { error, job } = found[at];
    if (!(problems.length || bad.found.size || refused.length || error || job.chip.host_gpus)) return said.replaceChildren();
    const { messages } = await import("./modeler_messages.js");
    await released();
    said.replaceChildren(
      ...messages({
        schema,
        found: found[at],
        refused,
        problems,
        bad,
        alone: shown.alone(),
        apply: (changes, index) => (index === undefined ? apply(changes) : change(changes, index)),
        evaluate: evaluated,
      }),
    );
  }

  const render = perFrame(() => !signal.aborted && renderNow());
  function renderNow() {
    found = states().map((state) => ({ ...computed(state), published: publishedOf(state) }));
    if (found[at].setup && !bad.found.has("global_batch")) held = found[at].setup.global_batch;
    form.sync(states()[at], found[at], held, hold, bad.found.has("global_batch"));
    bar.update(states(), at, isUntouched(states()[at]));
    const query = queryOf(schema, catalog, a, b);
    const here = new URL(location.href);
    here.search = query;
    here.hash = "";
    shown.update(found, at, here.href);
    showMessages();
    const told = found.map((one, index) => sentence(one, catalog, found.length > 1 ? index : null));
    answered.replaceChildren(...told.map((text) => el("span", {}, text)));
    // Above a phone's form: the configuration that is edited, without the largest loss.
    brief.textContent = told[at].split(". ")[0];
    say(told.join(" "));
    verdict?.then((box) => box.update());
    writeAddress(query);
    tellJob(jobRecord(schema, catalog, states()[at], found[at].setup));
  }
  judged.open = location.hash.startsWith(`#${judged.id}`);
  renderNow();
}

// What a run states about itself, how its MFU is counted and of which peak, and which parts are assumed.
const publishedBy = ({ published, ...run }) => (published ? { ...run, ...published } : null);

mountTool("#modeler", build);
