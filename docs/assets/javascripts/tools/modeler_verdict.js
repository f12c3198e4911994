// Whether a reader's measurement is good: the verdict of `figgen verdict`, with its code and words.
// Loaded on request.

import { InputError } from "../engine/errors.js";
import { servedBy } from "../engine/job.js";
import { record } from "../engine/records.js";
import { likeRuns } from "../like-runs.js";
import { training_flops_per_token, utilisation_of_step } from "../models/step/compute.js";
import { parameter_counts } from "../models/shape/transformer.js";
import { ALWAYS, MeasuredJob, step_row } from "../scenarios/runs/step_entry.js";
import { batch_words, logged_step_s, shared_batch } from "../scenarios/taking/log_words.js";
import { read_log } from "../scenarios/taking/logs.js";
import { TimedJob } from "../scenarios/verdict/changed.js";
import { LikeRow, like_rows, row_of_columns } from "../scenarios/verdict/like.js";
import { seconds_of_speed } from "../scenarios/verdict/measurement.js";
import { reasons_of, spread_of } from "../scenarios/verdict/reasons.js";
import { FASTER, NEAREST, SHOWN, like_sentence, like_words, reason_words, typed_speed, verdict_sentence } from "../scenarios/verdict/words.js";
import { button, el, field } from "./dom.js";
import { told } from "./logs.js";
import { fullestOf } from "./modeler_model.js";
import { rowForm } from "./row_form.js";

const { texts, columns, chips, stacks, eager } = likeRuns;
const rows = columns[0].map((_, at) => row_of_columns(texts, columns, at));

/** { measured, low, high, class, predicted, utilization, like, reasons } of a configuration without a measured step. */
export function verdictOf(catalog, found, text) {
  const { job, setup, state, memory } = found;
  if (!job.predicted) throw new InputError("the prediction", { expected: "a GPU and options that the model times", got: "none" });
  const [low, high] = job.predicted.residuals;
  const { attained, rates, numbers, seconds: { total_s: predicted } } = job.timed;
  const gpus = setup.parallel.world_size;
  const shape = setup.shape;
  const sequence = setup.sequence;
  const peak = rates.peak_flops_per_s;
  const log = read_log(text);
  const [kind, speed] = log?.steps ? speedOf(log, setup, gpus) : typed_speed(text);
  const measured = seconds_of_speed(kind, speed, setup.tokens_per_step / gpus, training_flops_per_token(shape, undefined, sequence), peak);
  const timed = record(TimedJob, {
    job: numbers, rates: attained, seconds: predicted, head_dim: shape.head_dim, framework: rates.framework,
    network_per_node: catalog.links[state.nic]?.per === "node", peak_flops_per_s: peak,
    tf32_flops_per_s: catalog.accelerators[state.chip]?.peaks.tf32 ?? peak / 2,
    eager_elementwise: eager[0], eager_loss_bytes: eager[1],
  });
  const utilisation = utilisation_of_step(shape, undefined, measured, setup.tokens_per_step, gpus, peak, sequence);
  const own = record(LikeRow, {
    name: "", publisher: "", source: "", chips: chips[state.chip] ?? "", stack: stacks[rates.framework] ?? "",
    experts: shape.experts !== null, dtype: rates.dtype, recompute: setup.recompute, parameters: parameter_counts(shape).total,
    gpus, sequence, utilisation,
  });
  const capacity = memory.capacity_bytes;
  const used = log?.memory_bytes ?? fullestOf(found).total_bytes;
  const reasons = reasons_of(timed, measured, spread_of(low, high), capacity ? used / capacity : null, log?.steps ?? 0);
  return {
    measured, predicted, low: low * predicted, high: high * predicted, class: job.predicted.interval_of, utilisation,
    like: like_rows(rows, own), reasons,
  };
}

/**
 * { found, said } of the page's configuration with a log's global batch; `foundNow(changes)` computes it, and
 * `said` is a sentence if the page's batch differs. Throws InputError if the layout can't have the log's.
 */
export function ofLog(foundNow, text) {
  const [found, log] = [foundNow(), read_log(text)];
  const { setup } = found;
  if (!setup || !log?.steps || !log.global_batch || log.global_batch === setup.global_batch) return { found, said: null };
  return {
    found: foundNow({ microbatches: shared_batch(log.global_batch, setup.global_batch / setup.microbatches) }),
    said: batch_words(log.global_batch, setup.global_batch),
  };
}

function speedOf(log, setup, gpus) {
  const seconds = logged_step_s(log, setup.tokens_per_step, gpus, setup.global_batch);
  return seconds === null ? ["tflops", log.flops_per_s_per_gpu] : ["step_time", seconds];
}

/** The configuration and its measured step as the entry that `figgen verdict --row` prints. Throws InputError. */
export function stepRowOf(catalog, { job, setup }, text, measured, address) {
  const usual = new Map(catalog.options.map(({ name, default: value = null }) => [name, value]));
  const isSaid = ([name, value]) => value !== null && (ALWAYS.includes(name) || JSON.stringify(value) !== JSON.stringify(usual.get(name)));
  const choices = Object.entries(Object.fromEntries(job.given)).filter(isSaid).sort(([one], [other]) => (one < other ? -1 : 1));
  const [log, served] = [read_log(text), servedBy(catalog)];
  return step_row(record(MeasuredJob, {
    model: job.model, accelerator: job.accelerator, software: job.software, gpus: setup.parallel.world_size,
    choices: new Map(choices.map(([name, value]) => [name, JSON.stringify(value)])),
    step_time_s: measured, steps: log?.steps ?? 0, peak_memory_bytes: log?.steps ? log.memory_bytes : null,
    day: new Date().toISOString().slice(0, 10),
  }), address, served.models, served.accelerators);
}

/** The verdict as elements. */
function verdictShown({ measured, predicted, low, high, class: name, utilisation, like, reasons }) {
  return [
    told([measured > high ? "warning" : "good", `Your step is ${verdict_sentence(measured, predicted, low, high, name)}.`]),
    el("p", {}, like_sentence(utilisation, like)),
    el("ul", {}, like.slice(0, NEAREST).map((one) => el("li", {}, like_words(one)))),
    ...(measured < low ? [el("p", {}, FASTER)] : [
    el("p", {}, "The likeliest reasons, the time that each costs in your step, and how to check:"),
    el("ol", {}, reasons.slice(0, SHOWN).map((one) => el("li", {}, `${reason_words(one)}.`, el("small", {}, `${one.tell}.`)))),
    ]),
  ];
}

function rowBox(catalog, found, text, measured) {
  const { nodes, show } = rowForm("your log", "https://github.com/you/cluster/blob/3f2a91c/train.log", () => true, (address) => stepRowOf(catalog, found, text, measured, address));
  show();
  return el("details", { class: "tool-asked" }, el("summary", {}, "Add this step to the catalog"), el("p", {}, "Publish your log, then paste both parts into the files that they name."), ...nodes);
}

/** Fills `box` when its summary is opened; `foundNow(changes)` is the configuration, changed. Returns { update(), ask(text) }. */
export function verdictBox(box, catalog, foundNow) {
  const answer = el("div", { class: "tool-answer", "aria-live": "polite" });
  const input = el("textarea", { rows: 1, spellcheck: "false", placeholder: "7000 tokens/s, 9.5 s, 412 TFLOP/s, 38%, or lines of your log" });
  const update = () => {
    const text = input.value.trim();
    try {
      const { found, said } = text ? ofLog(foundNow, text) : {};
      const verdict = text && !found.error && verdictOf(catalog, found, text);
      answer.replaceChildren(...(verdict ? [...(said ? [told(["warning", said])] : []), ...verdictShown(verdict), rowBox(catalog, found, text, verdict.measured)] : []));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      answer.replaceChildren(told(["bad", error.message.replace(/[^?]$/, "$&.")]));
    }
  };
  input.addEventListener("change", update);
  box.append(el("p", {}, "Compare what you measured with the prediction and with published runs."), field("What you measured, per GPU", input), el("div", { class: "tool-actions" }, button("Compare", update)), answer);
  const ask = (text) => { [input.value, box.open] = [text, true]; update(); };
  // A link from another tool brings what was measured.
  const brought = new URLSearchParams(location.hash.slice(1)).get(box.id);
  if (brought) ask(brought);
  return { update, ask };
}
