// The derivation of each number of the modeler: keys to worked lines. Pure; opened on demand.

import { changeLines } from "./modeler_how_change.js";
import { inFlightLines, layersLines, memoryLines, parameterLines } from "./modeler_how_memory.js";
import { UPDATE } from "./modeler_how_tuned.js";
import { HARDWARE, computeLines, kindLines, recomputeLines, utilisationLines } from "./modeler_how_parts.js";
import { TRAFFIC, rowSums } from "./modeler_how_traffic.js";
import { fit_words } from "../models/memory/fit_probability.js";
import { MFU_CONVENTION } from "../models/step/compute.js";
import { UNKNOWN } from "../scenarios/runs/class_ends.js";
import { operationsOf } from "./modeler_counts.js";
import { LEVELS, fullestOf, kindsOf, partsOf } from "./modeler_model.js";
import { bytes, percent, plainNumber, quantity, seconds, span } from "./quantities.js";
import { workedLine } from "../engine/worked.js";
import { plainLine, sumLine } from "./worked.js";

export { paragraphs } from "./modeler_paragraphs.js";

/** The lines behind `key` for a configuration; `notes` are those of formula-notes.js. */
export function howOf(key, found, notes) {
  const [name, ...rest] = key.split(":");
  return name.startsWith("kind-") ? kindLines(found, name) : HOW[name](found, notes, ...rest);
}

const rate = ({ job }) => job.cluster.peak_flops_per_s * job.compute_efficiency;
const computing = ({ step }) => step.compute_s + step.recompute_s;

const HOW = {
  step: (found) => [
    sumLine(
      "The time that the busiest GPU computes, waits for messages and idles.",
      partsOf(found).map(({ label, seconds: s }) => [label, s]),
      found.step.step_time_s,
      seconds,
    ),
  ],

  interval: ({ job: { predicted }, step }) => [
    plainLine(
      predicted.interval_of === UNKNOWN
        ? "Few published runs are like this one, so its interval is wide."
        : `Eight in ten measured runs of the class "${predicted.interval_of}" lie in this interval.`,
      "prediction · lowest to highest",
      `${seconds(step.step_time_s)} · ${predicted.residuals.map((share) => plainNumber(share)).join(" to ")} = ${span(...step.step_time_interval_s)}`,
    ),
  ],

  throughput: ({ step }) => [
    plainLine(
      "Tokens of all replicas, per second per GPU.",
      "tokens per step / step time / GPUs",
      `${plainNumber(step.tokens_per_step)} / ${seconds(step.step_time_s)} / ${plainNumber(step.world_size)} = ${plainNumber(step.tokens_per_s_per_gpu)}`,
    ),
  ],

  mfu: (found, notes, convention, peakOf) =>
    utilisationLines(found, notes, convention ?? MFU_CONVENTION, peakOf && found.published.mfu_peak_flops_per_s),

  compute: (found) => computeLines(found),
  computing: (found) => [
    ...computeLines(found),
    sumLine(
      "Including recomputation",
      [
        ["computing", found.step.compute_s],
        ["recomputation", found.step.recompute_s],
      ],
      computing(found),
      seconds,
    ),
  ],
  share: (found, _, key) => {
    const { label, seconds: s } = [...partsOf(found), ...kindsOf(found)].find((part) => part.key === key);
    return [
      plainLine(
        "Its share of the step.",
        `${label} / step time`,
        `${seconds(s)} / ${seconds(found.step.step_time_s)} = ${percent(s / found.step.step_time_s)}`,
      ),
    ];
  },
  recompute: (found) => recomputeLines(found),

  bubble: (found) => {
    const { step } = found;
    const others = partsOf(found).filter(({ key }) => key !== "bubble");
    return [
      plainLine(
        "Idle time of the busiest GPU while the pipeline fills and drains: the step minus its other parts.",
        ["step", ...others.map(({ label }) => label)].join(" − "),
        `${[step.step_time_s, ...others.map(({ seconds: s }) => s)].map(seconds).join(" − ")} = ${seconds(step.bubble_s)}`,
      ),
      plainLine(
        "bubble_fraction of the step: idle over wall time.",
        "idle / step",
        `${seconds(step.bubble_s)} / ${seconds(step.step_time_s)} = ${percent(step.bubble_fraction)}`,
      ),
      plainLine(
        "bubble_overhead of the step: idle over computing.",
        "idle / computing",
        `${seconds(step.bubble_s)} / ${seconds(computing(found))} = ${percent(step.bubble_overhead)}`,
      ),
    ];
  },

  operations: ({ setup }) => {
    const { parts, total } = operationsOf(setup);
    const { depth } = setup.placement;
    return [
      plainLine(
        "Every microbatch passes every stage of its pipeline once forward.",
        "stages that a microbatch passes · microbatches",
        `${plainNumber(depth)} · ${plainNumber(setup.microbatches)} = ${plainNumber(depth * setup.microbatches)}`,
      ),
      sumLine("Forward and backward passes of all pipeline ranks.", parts, total, plainNumber),
    ];
  },
  fraction: ({ pipeline }, notes) => closed(pipeline, notes, "bubble_fraction", pipeline.bubble_fraction),
  overhead: ({ pipeline }, notes) => closed(pipeline, notes, "bubble_overhead", pipeline.bubble_overhead),
  efficiency: ({ pipeline }, notes) => {
    const { stages, microbatches, chunks } = pipeline;
    const found = workedLine(notes, "pipeline_efficiency", { stages, microbatches, chunks }, ".1%");
    if (!holds(pipeline, found, pipeline.efficiency)) return simulated(pipeline, "efficiency", pipeline.efficiency);
    const enough = { stages, chunks, efficiency: 0.8 };
    return stages > 1 ? [found, workedLine(notes, "microbatches_for_efficiency", enough)] : [found];
  },

  exposed: (found, _, axis) =>
    axis
      ? rowSums(found, axis, ({ exposed_s }) => exposed_s, "The part that the step waits for, by kind of call.")
      : [
          sumLine(
            "Waiting for messages, by communicator.",
            Object.entries(found.step.exposed_s).map(([name, s]) => [name.toUpperCase(), s]),
            Object.values(found.step.exposed_s).reduce((sum, s) => sum + s, 0),
            seconds,
          ),
        ],
  hidden: (found, _, axis) =>
    rowSums(
      found,
      axis,
      ({ time_s, exposed_s }) => Math.max(0, time_s - exposed_s),
      "Hidden communication, by kind of call.",
    ),

  ...TRAFFIC,
  ...HARDWARE,
  ...UPDATE,
  change: (found, notes, measure) => changeLines(found, notes, measure, howOf),

  needed: (found, _, level) => {
    const load = loadOf(found, level);
    return [
      plainLine(
        `To hide behind computing, the bytes of the GPU's own link ${LEVELS[level]} need this rate. With less, the link limits the step even if everything overlaps.`,
        "bytes of the link / computing",
        `${bytes(load.port_bytes)} / ${seconds(computing(found))} = ${quantity(load.needed_bandwidth_bytes_per_s, "B/s")}`,
      ),
    ];
  },
  ridge: (found, notes, level) => {
    const { bandwidth_bytes_per_s } = loadOf(found, level);
    return [workedLine(notes, "ridge_point", { peak_flops_per_s: rate(found), bandwidth_bytes_per_s })];
  },
  ccr: (found, _, level) => {
    const load = loadOf(found, level);
    return [
      plainLine(
        "Work of the GPU per byte that its link carries.",
        "FLOP / bytes of the link",
        `${quantity(load.ccr * load.port_bytes, "FLOP")} / ${bytes(load.port_bytes)} = ${quantity(load.ccr, "FLOP/B")}`,
      ),
    ];
  },
  waits: (found, _, level) => {
    const { exposed_s } = loadOf(found, level);
    return [
      plainLine(
        `The part of all calls ${LEVELS[level]} that the step waits for, as a share of the step.`,
        "exposed / step time",
        `${seconds(exposed_s)} / ${seconds(found.step.step_time_s)} = ${percent(exposed_s / found.step.step_time_s)}`,
      ),
    ];
  },
  attainable: (found, notes, level) => {
    const { ccr, ridge } = loadOf(found, level);
    return ["efficiency_with_overlap", "efficiency_without_overlap"].map((name) =>
      workedLine(notes, name, { ccr, ridge }, ".1%"),
    );
  },

  memory: (found, notes, rank, part) => memoryLines(found, notes, found.memory.ranks[Number(rank)], part),
  fullest: (found, notes) => memoryLines(found, notes, fullestOf(found)),
  layers: (found, _, rank) => layersLines(found, Number(rank)),
  parameters: (found, _, rank) => parameterLines(found, Number(rank)),
  inflight: (found, _, rank) => inFlightLines(found, found.memory.ranks[Number(rank)]),
  free: ({ memory, ...found }) => [
    plainLine(
      "The capacity minus the memory of the fullest rank.",
      "capacity − fullest rank",
      `${bytes(memory.capacity_bytes)} − ${bytes(fullestOf({ memory, ...found }).total_bytes)} = ${bytes(memory.free_bytes)}`,
    ),
  ],

  chance: ({ memory }) => [
    plainLine(
      "Errors are normal; their variance grows with memory.",
      "Φ(free / deviation)",
      `Φ(${bytes(memory.free_bytes)} / ${bytes(memory.spread_bytes)}): ${fit_words(memory.fit_probability)}`,
    ),
  ],

  buckets: ({ step: { gradient_buckets: found } }, notes) => [exposedLine(found, found.buckets, notes)],
  bestbuckets: ({ step: { gradient_buckets: found } }, notes) => {
    const { communication_s, compute_s, overhead_s: bucket_overhead_s } = found;
    const balanced = bucket_overhead_s > 0;
    return [
      exposedLine(found, found.best_buckets, notes),
      ...(balanced ? [workedLine(notes, "best_overlapped_bucket_count", { communication_s, compute_s, bucket_overhead_s })] : []),
    ];
  },

  batch: ({ setup }) => [
    plainLine(
      "Sequences of all replicas in a step.",
      "microbatches · sequences in each · DP",
      `${plainNumber(setup.microbatches)} · ${plainNumber(setup.microbatch_size)} · ${plainNumber(setup.parallel.dp)} = ${plainNumber(setup.global_batch)}`,
    ),
    plainLine(
      "Tokens of a step.",
      "global batch · sequence length",
      `${plainNumber(setup.global_batch)} · ${plainNumber(setup.sequence)} = ${plainNumber(setup.tokens_per_step)} ≈ ${quantity(setup.tokens_per_step, "token", "si")}`,
    ),
  ],
};

const exposedLine = ({ communication_s, compute_s, overhead_s }, buckets, notes) =>
  workedLine(notes, "exposed_communication_time", {
    communication_s,
    compute_s,
    buckets,
    bucket_overhead_s: overhead_s,
  });

const loadOf = ({ step }, level) => step.levels.find((one) => one.level === level);

// There are closed forms for three schedules; the interleaved one requires whole rounds of microbatches.
const CLOSED = ["gpipe", "1f1b", "interleaved-1f1b"];
const holds = ({ schedule }, line, value) => CLOSED.includes(schedule) && Math.abs(line.value - value) < 1e-9;

function closed({ schedule, stages, microbatches, chunks }, notes, name, value) {
  const interleaved = schedule === "interleaved-1f1b";
  const given = interleaved ? { stages, microbatches, chunks } : { stages, microbatches };
  const line = workedLine(notes, interleaved ? `interleaved_${name}` : name, given, ".1%");
  return holds({ schedule }, line, value) ? [line] : simulated({ schedule, stages, microbatches }, name, value);
}

const simulated = ({ schedule, stages, microbatches }, name, value) => [
  plainLine(
    `Simulated: ${schedule} with ${plainNumber(stages)} equal stages, ${plainNumber(microbatches)} microbatches, backward twice a forward, free messages.`,
    name,
    percent(value),
  ),
];
