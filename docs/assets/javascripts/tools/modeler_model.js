// One configuration computed: the engine's answers, and what the views say about them in numbers.
// Nothing here touches the document.

import { InputError } from "../engine/errors.js";
import { sum } from "../engine/orders.js";
import { build } from "../engine/schedule.js";
import { simulate } from "../engine/simulate.js";
import { kv_ring_buffer_bytes } from "../step-formulas.js";
import { setupFrom } from "../engine/predicted.js";
import { FAMILIES, trainingMemory, trainingStep } from "../engine/training.js";
import { choicesOf } from "./modeler_state.js";
import { percent, plainNumber, quantity } from "./quantities.js";

/** Communicators under whose axis the breakdown counts another one; as figgen.models.step has it. */
export const familyOf = (axis) => FAMILIES[axis] ?? axis;

const NAMES = { "dp-cp": "DP × CP", edp: "EDP", embedding: "embedding" };
/** What a reader sees a communicator called. */
export const axisLabel = (axis) => NAMES[axis] ?? axis.toUpperCase();

/** The hue of a communicator, as in the figures of the guide. */
export const hueOf = (axis) => ({ etp: "tp" })[familyOf(axis)] ?? familyOf(axis);

export const LEVELS = { "scale-up": "inside a node", network: "between nodes" };

/** Parts of memory in their order: name, label, role. */
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
 * What the engine says of a state: { state, setup, step, memory, pipeline }, or { state, error }.
 * `share` of the peak is what hardware reaches that nobody timed, such as a variant of a
 * configuration with other numbers.
 */
export function evaluate(catalog, state, share = null) {
  try {
    const choices = choicesOf(catalog, state);
    const setup = setupFrom(catalog, share === null ? choices : { ...choices, untimed: share });
    return {
      state,
      setup,
      step: trainingStep(setup),
      memory: trainingMemory(setup),
      pipeline: pipelineOf(setup),
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { state, error };
  }
}

const pipelines = new Map();

/**
 * The schedule alone, with equal stages and free messages: what the closed forms are about.
 * Kept, because every variant that leaves it alone asks for it again.
 */
export function pipelineOf({ schedule, order, parallel, microbatches }) {
  const { chunks } = order.placement;
  const key = [schedule, parallel.pp, microbatches, chunks].join(" ");
  if (!pipelines.has(key)) {
    if (pipelines.size > 64) pipelines.clear();
    const trace = simulate(order ?? build(schedule, { stages: parallel.pp, microbatches, chunks }));
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

const ACTIONS = ["forward", "backward", "backward for inputs", "backward for weights"];

/** What all pipeline ranks of a replica carry out in a step: { parts: [[name, count], …], total }. */
export function operationsOf({ order: { orders } }) {
  const counts = [0, 0, 0, 0];
  for (const actions of orders) for (const code of actions) counts[code & 3]++;
  const parts = ACTIONS.map((name, kind) => [name, counts[kind]]).filter(([, count]) => count);
  return { parts, total: sum(counts) };
}

/** Where the step's time goes: { key, label, role, seconds }, adding up to the step. */
export function partsOf({ step }) {
  const parts = [
    { key: "compute", label: "computing", role: "series-2", seconds: step.compute_s },
    { key: "recompute", label: "computed again", role: "series-4", seconds: step.recompute_s },
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

/** What costs most besides computing, in words, with its seconds. */
export function bottleneckOf(found) {
  const [worst] = partsOf(found)
    .filter(({ key }) => key !== "compute")
    .sort((a, b) => b.seconds - a.seconds);
  if (!worst || worst.seconds < 0.02 * found.step.step_time_s) {
    return { key: "compute", label: "computing", seconds: found.step.compute_s };
  }
  return worst;
}

/** What the formula of a ring's two buffers takes for a configuration. */
export const ringArguments = ({ shape, microbatch_size, sequence, parallel: { cp }, kv_heads_per_rank }) => ({
  microbatch_size,
  sequence_length: sequence,
  cp,
  kv_width: kv_heads_per_rank * shape.head_dim,
  bytes_per_element: 2,
});

/** Bytes of two buffers of keys and values of one layer. */
export const ringBytes = (setup) => kv_ring_buffer_bytes(ringArguments(setup));

/** The fullest pipeline rank. */
export const fullestOf = ({ memory }) => memory.ranks[memory.fullest_rank];

/**
 * The convention of the headline MFU: attention counts as it is computed, whole or without its masked
 * half, so that no MFU exceeds the efficiency of products.
 */
export const basisOf = ({ setup }) => (setup.flash_attention ? "causal" : "6nd+attention");

/** The headline MFU. */
export const mfuOf = (found) => found.step.utilisation[basisOf(found)];

export const sentBytes = ({ step }) => sum(step.communication.map((row) => row.sent_bytes));

const totalExposed = ({ step }) => sum(Object.values(step.exposed_s));

/**
 * What configurations are held against each other by: [label, unit, value of a configuration,
 * 1 if more of it is better and −1 if less is, the key of its worked line].
 */
export const MEASURES = {
  throughput: ["tokens/s per GPU", "1", ({ step }) => step.tokens_per_s_per_gpu, 1, "throughput"],
  mfu: ["MFU, attention as computed", "%", mfuOf, 1, "mfu"],
  step: ["step time", "s", ({ step }) => step.step_time_s, 0, "step"],
  tokens: ["tokens per step", "token", ({ setup }) => setup.tokens_per_step, 0, "batch"],
  computing: ["computing", "s", ({ step }) => step.compute_s + step.recompute_s, 0, "computing"],
  bubble: ["bubble_fraction of the step", "%", ({ step }) => step.bubble_fraction, -1, "bubble"],
  fraction: ["bubble_fraction of the schedule", "%", ({ pipeline }) => pipeline.bubble_fraction, -1, "fraction"],
  exposed: ["exposed communication", "s", totalExposed, 0, "exposed"],
  sent: ["sent per GPU and step", "B", sentBytes, 0, "sent"],
  fullest: ["fullest GPU", "B", (found) => fullestOf(found).total_bytes, -1, "fullest"],
  world: ["GPUs", "1", ({ step }) => step.world_size, 0, "world"],
};

/** A value of a measure as a reader sees it. */
export const shownAs = (unit, value) => {
  if (unit === "%") return percent(value);
  return unit === "1" ? plainNumber(value) : quantity(value, unit, unit === "token" ? "si" : "");
};
