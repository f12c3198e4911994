// How each number of the modeler comes about: keys to worked lines. Pure; opened on demand.

import { callLines, memoryLines, rowSums, sentLine, utilisationLines } from "./modeler_how_parts.js";
import { LEVELS, fullestOf, partsOf, ringArguments } from "./modeler_model.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { workedLine } from "../engine/worked.js";
import { plainLine, sumLine } from "./worked.js";

/** The lines behind `key` for a configuration; `notes` are those of formula-notes.js. */
export function howOf(key, found, notes) {
  const [name, ...rest] = key.split(":");
  return HOW[name](found, notes, ...rest);
}

const rate = ({ setup }) => setup.cluster.peak_flops_per_s * setup.compute_efficiency;
const rateText = ({ setup }) =>
  `(${quantity(setup.cluster.peak_flops_per_s, "FLOP/s")} · ${percent(setup.compute_efficiency, 0)})`;
const computing = ({ step }) => step.compute_s + step.recompute_s;

const HOW = {
  step: (found) => [
    sumLine(
      "A step is what the GPU that works longest computes, waits for and idles.",
      partsOf(found).map(({ label, seconds: s }) => [label, s]),
      found.step.step_time_s,
      seconds,
    ),
  ],

  throughput: ({ step }) => [
    plainLine(
      "Tokens of all replicas, per second and GPU.",
      "tokens per step / step time / GPUs",
      `${plainNumber(step.tokens_per_step)} / ${seconds(step.step_time_s)} / ${plainNumber(step.world_size)} = ${plainNumber(step.tokens_per_s_per_gpu)}`,
    ),
  ],

  mfu: (found, notes, convention) => utilisationLines(found, notes, convention),

  compute: (found) => {
    const { setup, step } = found;
    const work = step.compute_s * rate(found);
    return [
      plainLine(
        `Products of pipeline rank ${step.pipeline_rank}, forward and backward of ${setup.passing} microbatches, at the share of the dense peak that they reach.`,
        "FLOP of the GPU / (peak · efficiency)",
        `${quantity(work, "FLOP")} / ${rateText(found)} = ${seconds(step.compute_s)}`,
      ),
    ];
  },
  recompute: (found) => [
    plainLine(
      "The forward that backward repeats.",
      "FLOP computed again / (peak · efficiency)",
      `${quantity(found.step.recompute_s * rate(found), "FLOP")} / ${rateText(found)} = ${seconds(found.step.recompute_s)}`,
    ),
  ],

  bubble: (found) => {
    const { step } = found;
    return [
      plainLine(
        "Idle time of the GPU that works longest while the pipeline fills and drains, from the simulated schedule with this step's own durations.",
        "simulated schedule − computing − exposed communication within it",
        seconds(step.bubble_s),
      ),
      plainLine(
        "bubble_fraction of the step: idle over wall time.",
        "bubble / step",
        `${seconds(step.bubble_s)} / ${seconds(step.step_time_s)} = ${percent(step.bubble_fraction)}`,
      ),
      plainLine(
        "bubble_overhead of the step: idle over computing.",
        "bubble / computing",
        `${seconds(step.bubble_s)} / ${seconds(computing(found))} = ${percent(step.bubble_overhead)}`,
      ),
    ];
  },

  fraction: ({ pipeline }, notes) => closed(pipeline, notes, "bubble_fraction", pipeline.bubble_fraction),
  overhead: ({ pipeline }, notes) => closed(pipeline, notes, "bubble_overhead", pipeline.bubble_overhead),
  efficiency: ({ pipeline }, notes) => {
    const { stages, microbatches, chunks } = pipeline;
    if (!CLOSED.includes(pipeline.schedule)) return simulated(pipeline, "efficiency", pipeline.efficiency);
    const found = [workedLine(notes, "pipeline_efficiency", { stages, microbatches, chunks }, ".1%")];
    if (stages > 1) {
      found.push(workedLine(notes, "microbatches_for_efficiency", { stages, chunks, efficiency: 0.8 }));
    }
    return found;
  },

  exposed: (found, _, axis) =>
    rowSums(found, axis, ({ exposed_s }) => exposed_s, "What of it the step waits for, by kind of call."),
  hidden: (found, _, axis) =>
    rowSums(
      found,
      axis,
      ({ time_s, exposed_s }) => Math.max(0, time_s - exposed_s),
      "What runs behind something else, by kind of call.",
    ),

  row: (found, notes, index) => callLines(found, notes, found.step.communication[Number(index)]),

  sent: ({ step }, _, index) => [sentLine(step.communication[Number(index)])],

  transfer: ({ step }, _, axis, level) => {
    const rows = step.communication.filter((row) => row.axis === axis && row.level === level);
    return [
      ...rows.map(sentLine),
      ...(rows.length > 1
        ? [
            sumLine(
              "All of it",
              rows.map((row) => [`${row.purpose}, ${row.collective}`, row.sent_bytes]),
              rows.reduce((sum, row) => sum + row.sent_bytes, 0),
              bytes,
            ),
          ]
        : []),
    ];
  },

  needed: (found, _, level) => {
    const load = loadOf(found, level);
    return [
      plainLine(
        `Sent evenly behind computing, the bytes of the GPU's own link ${LEVELS[level]} need this rate. With less, the link sets the pace however well the two overlap.`,
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
  attainable: (found, notes, level) => {
    const { ccr, ridge } = loadOf(found, level);
    return ["efficiency_with_overlap", "efficiency_without_overlap"].map((name) =>
      workedLine(notes, name, { ccr, ridge }, ".1%"),
    );
  },

  memory: (found, _, rank, part) => memoryLines(found, found.memory.ranks[Number(rank)], part),
  free: ({ memory, ...found }) => [
    plainLine(
      "What the fullest rank leaves of the capacity.",
      "capacity − fullest rank",
      `${bytes(memory.capacity_bytes)} − ${bytes(fullestOf({ memory, ...found }).total_bytes)} = ${bytes(memory.free_bytes)}`,
    ),
  ],

  buckets: ({ step: { gradient_buckets: found } }, notes) => {
    const { communication_s, compute_s, overhead_s } = found;
    const exposed = (buckets) =>
      workedLine(notes, "exposed_communication_time", {
        communication_s,
        compute_s,
        buckets,
        bucket_overhead_s: overhead_s,
      });
    const balanced =
      overhead_s > 0
        ? [workedLine(notes, "best_bucket_count", { communication_s, bucket_overhead_s: overhead_s })]
        : [];
    return [exposed(found.buckets), exposed(found.best_buckets), ...balanced];
  },

  batch: ({ setup }) => [
    plainLine(
      "Sequences of all replicas in a step.",
      "microbatches · sequences in each · DP",
      `${setup.microbatches} · ${setup.microbatch_size} · ${setup.parallel.dp} = ${plainNumber(setup.global_batch)}`,
    ),
    plainLine(
      "Tokens of a step.",
      "global batch · sequence length",
      `${plainNumber(setup.global_batch)} · ${plainNumber(setup.sequence)} = ${plainNumber(setup.tokens_per_step)}`,
    ),
  ],

  keys: ({ setup }, notes) => [workedLine(notes, "kv_ring_buffer_bytes", ringArguments(setup))],
};

const CLOSED = ["gpipe", "1f1b", "interleaved-1f1b"];
const loadOf = ({ step }, level) => step.levels.find((one) => one.level === level);

function closed({ schedule, stages, microbatches, chunks, ...pipeline }, notes, name, value) {
  if (!CLOSED.includes(schedule)) return simulated({ schedule, stages, microbatches, ...pipeline }, name, value);
  const interleaved = schedule === "interleaved-1f1b";
  const formula = interleaved ? `interleaved_${name}` : name;
  return [workedLine(notes, formula, interleaved ? { stages, microbatches, chunks } : { stages, microbatches }, ".1%")];
}

const simulated = ({ schedule, stages, microbatches }, name, value) => [
  plainLine(
    `Simulated: ${schedule} with ${stages} equal stages, ${microbatches} microbatches, backward twice a forward, free messages.`,
    name,
    percent(value),
  ),
];
