// One configuration, computed: the engine's answers, and the numbers that the views show.
// Nothing here touches the document.

import { InputError } from "../engine/errors.js";
import { jobOf } from "../engine/job.js";
import { plain } from "../engine/records.js";
import { simulate } from "../models/pipeline/simulate.js";
import { family_of as familyOf } from "../models/step/step_rows.js";
import { computing_kinds } from "../models/step/predicted_parts.js";
import { largest_loss } from "../models/step/step_words.js";
import { page_answers } from "../scenarios/tools/page_answers.js";
import { choicesOf } from "./modeler_state.js";

const NAMES = { "dp-cp": "DP × CP", edp: "EDP", embedding: "embedding" };
/** The name of a communicator for readers. */
export const axisLabel = (axis) => NAMES[axis] ?? axis.toUpperCase();

/** The hue of a communicator, as in the figures of the guide. */
export const hueOf = (axis) => ({ etp: "tp" })[familyOf(axis)] ?? familyOf(axis);

export const LEVELS = { "scale-up": "inside a node", network: "between nodes" };

/** Parts of memory in order: name, label, role. */
export const PARTS = [
  ["weights", "weights", "series-1"],
  ["gradients", "gradients", "series-2"],
  ["optimizer", "optimizer", "series-3"],
  ["activations", "activations", "series-4"],
  ["working", "loss or one layer", "series-5"],
  ["communication", "buffers", "series-6"],
  ["reserve", "reserve", "neutral"],
];

/**
 * The engine's answer for a state: { state, job, setup, step, memory, pipeline }, or { state, error }.
 * `base` is the original of a variant; its rates are used for hardware that nobody has timed.
 */
export function evaluate(catalog, state, base = null) {
  try {
    const job = jobOf(catalog, choicesOf(catalog, state), base);
    return { state, job, setup: job.setup, ...plain(page_answers(job)), pipeline: pipelineOf(job.setup) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { state, error };
  }
}

const pipelines = new Map();

/**
 * Only the schedule, with equal stages and free messages, as assumed by the closed forms.
 * It is cached, because every variant with the same schedule needs it.
 */
function pipelineOf({ schedule, order, parallel, microbatches }) {
  const { chunks } = order.placement;
  const key = [schedule, parallel.pp, microbatches, chunks].join(" ");
  if (!pipelines.has(key)) {
    if (pipelines.size > 64) pipelines.clear();
    const trace = simulate(order);
    const { bubble_fraction, bubble_overhead } = trace;
    pipelines.set(key, {
      schedule,
      stages: parallel.pp,
      microbatches,
      chunks,
      bubble_fraction,
      bubble_overhead,
      efficiency: 1 - bubble_fraction,
    });
  }
  return pipelines.get(key);
}

/** Where the step's time goes: { key, label, role, seconds }, adding up to the step. */
export function partsOf({ step }) {
  const parts = [
    { key: "compute", label: "computing", role: "series-2", seconds: step.compute_s },
    { key: "recompute", label: "recomputation", role: "series-4", seconds: step.recompute_s },
    { key: "bubble", label: "pipeline idle", role: "idle", seconds: step.bubble_s },
    ...Object.entries(step.exposed_s).map(([axis, seconds]) => ({
      key: `exposed-${axis}`,
      axis,
      label: `exposed ${axis.toUpperCase()}`,
      role: hueOf(axis),
      seconds,
    })),
  ];
  return parts.filter(({ seconds }) => seconds > 1e-12);
}

/** Computation by kind of kernel or wait, longest first; empty without a prediction. */
export const kindsOf = ({ step }) =>
  computing_kinds(Object.entries(step.kinds_s)).map(([label, seconds]) => ({ key: `kind-${label}`, label, seconds }));

/** Communication that runs behind something else, by axis, on the GPU that works longest. */
export function hiddenOf({ step }) {
  const found = new Map();
  for (const { axis, time_s, exposed_s } of step.communication) {
    const family = familyOf(axis);
    found.set(family, (found.get(family) ?? 0) + Math.max(0, time_s - exposed_s));
  }
  return [...found]
    .filter(([, seconds]) => seconds > 1e-12)
    .map(([axis, seconds]) => ({
      key: `hidden-${axis}`,
      axis,
      label: `hidden ${axis.toUpperCase()}`,
      role: hueOf(axis),
      seconds,
    }));
}

/** The largest cost besides computation: its key and its seconds. */
export const lossOf = ({ step }) =>
  largest_loss(step.step_time_s, step.recompute_s, step.bubble_s, Object.entries(step.exposed_s));

/** The largest cost besides computation as one of `partsOf`; computation if no other cost is large. */
export function bottleneckOf(found) {
  const [lost] = lossOf(found);
  return partsOf(found).find(({ key }) => key === lost);
}

/** The fullest pipeline rank. */
export const fullestOf = ({ memory }) => memory.ranks[memory.fullest_rank];

/** The MFU shown by every tool, page and command. */
export const mfuOf = ({ step }) => step.model_flops_utilisation;
