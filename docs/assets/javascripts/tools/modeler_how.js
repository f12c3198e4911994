// How each number of the modeler comes about: keys to worked lines. Pure; opened on demand.

import { groupLink } from "../engine/links.js";
import { CONVENTIONS, parameterCounts } from "../engine/transformer.js";
import { LEVELS, PARTS, axisLabel, familyOf, fullestOf, partsOf, ringArguments } from "./modeler_model.js";
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
    sumLine("A step is what the GPU that works longest computes, waits for and idles.",
      partsOf(found).map(({ label, seconds: s }) => [label, s]), found.step.step_time_s, seconds),
  ],

  throughput: ({ step }) => [
    plainLine("Tokens of all replicas, per second and GPU.", "tokens per step / step time / GPUs",
      `${plainNumber(step.tokens_per_step)} / ${seconds(step.step_time_s)} / ${plainNumber(step.world_size)} = ${plainNumber(step.tokens_per_s_per_gpu)}`),
  ],

  mfu: (found, notes, convention) => utilisationLines(found, notes, convention),

  compute: (found) => {
    const { setup, step } = found;
    const work = step.compute_s * rate(found);
    return [plainLine(
      `Products of pipeline rank ${step.pipeline_rank}, forward and backward of ${setup.passing} microbatches, at the share of the dense peak that they reach.`,
      "FLOP of the GPU / (peak · efficiency)",
      `${quantity(work, "FLOP")} / ${rateText(found)} = ${seconds(step.compute_s)}`)];
  },
  recompute: (found) => [plainLine("The forward that backward repeats.", "FLOP computed again / (peak · efficiency)",
    `${quantity(found.step.recompute_s * rate(found), "FLOP")} / ${rateText(found)} = ${seconds(found.step.recompute_s)}`)],

  bubble: (found) => {
    const { step } = found;
    return [
      plainLine("Idle time of the GPU that works longest while the pipeline fills and drains, from the simulated schedule with this step's own durations.",
        "simulated schedule − computing − exposed communication within it", seconds(step.bubble_s)),
      plainLine("bubble_fraction of the step: idle over wall time.", "bubble / step",
        `${seconds(step.bubble_s)} / ${seconds(step.step_time_s)} = ${percent(step.bubble_fraction)}`),
      plainLine("bubble_overhead of the step: idle over computing.", "bubble / computing",
        `${seconds(step.bubble_s)} / ${seconds(computing(found))} = ${percent(step.bubble_overhead)}`),
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

  exposed: (found, _, axis) => rowSums(found, axis, ({ exposed_s }) => exposed_s, "What of it the step waits for, by kind of call."),
  hidden: (found, _, axis) => rowSums(found, axis, ({ time_s, exposed_s }) => Math.max(0, time_s - exposed_s), "What runs behind something else, by kind of call."),

  row: (found, notes, index) => callLines(found, notes, found.step.communication[Number(index)]),

  sent: ({ step }, _, index) => [sentLine(step.communication[Number(index)])],

  transfer: ({ step }, _, axis, level) => {
    const rows = step.communication.filter((row) => row.axis === axis && row.level === level);
    return [
      ...rows.map(sentLine),
      ...(rows.length > 1 ? [sumLine("All of it", rows.map((row) => [`${row.purpose}, ${row.collective}`, row.sent_bytes]),
        rows.reduce((sum, row) => sum + row.sent_bytes, 0), bytes)] : []),
    ];
  },

  needed: (found, _, level) => {
    const load = loadOf(found, level);
    return [plainLine(`Sent evenly behind computing, the bytes of the GPU's own link ${LEVELS[level]} need this rate. With less, the link sets the pace however well the two overlap.`,
      "bytes of the link / computing",
      `${bytes(load.port_bytes)} / ${seconds(computing(found))} = ${quantity(load.needed_bandwidth_bytes_per_s, "B/s")}`)];
  },
  ridge: (found, notes, level) => {
    const { bandwidth_bytes_per_s } = loadOf(found, level);
    return [workedLine(notes, "ridge_point", { peak_flops_per_s: rate(found), bandwidth_bytes_per_s })];
  },
  ccr: (found, _, level) => {
    const load = loadOf(found, level);
    return [plainLine("Work of the GPU per byte that its link carries.", "FLOP / bytes of the link",
      `${quantity(load.ccr * load.port_bytes, "FLOP")} / ${bytes(load.port_bytes)} = ${quantity(load.ccr, "FLOP/B")}`)];
  },
  attainable: (found, notes, level) => {
    const { ccr, ridge } = loadOf(found, level);
    return ["efficiency_with_overlap", "efficiency_without_overlap"].map((name) => workedLine(notes, name, { ccr, ridge }, ".1%"));
  },

  memory: (found, _, rank, part) => memoryLines(found, found.memory.ranks[Number(rank)], part),
  free: ({ memory, ...found }) => [plainLine("What the fullest rank leaves of the capacity.", "capacity − fullest rank",
    `${bytes(memory.capacity_bytes)} − ${bytes(fullestOf({ memory, ...found }).total_bytes)} = ${bytes(memory.free_bytes)}`)],

  buckets: ({ step: { gradient_buckets: found } }, notes) => {
    const { communication_s, compute_s, overhead_s } = found;
    const exposed = (buckets) => workedLine(notes, "exposed_communication_time", { communication_s, compute_s, buckets, bucket_overhead_s: overhead_s });
    const balanced = overhead_s > 0
      ? [workedLine(notes, "best_bucket_count", { communication_s, bucket_overhead_s: overhead_s })] : [];
    return [exposed(found.buckets), exposed(found.best_buckets), ...balanced];
  },

  batch: ({ setup }) => [
    plainLine("Sequences of all replicas in a step.", "microbatches · sequences in each · DP",
      `${setup.microbatches} · ${setup.microbatch_size} · ${setup.parallel.dp} = ${plainNumber(setup.global_batch)}`),
    plainLine("Tokens of a step.", "global batch · sequence length",
      `${plainNumber(setup.global_batch)} · ${plainNumber(setup.sequence)} = ${plainNumber(setup.tokens_per_step)}`),
  ],

  keys: ({ setup }, notes) => [workedLine(notes, "kv_ring_buffer_bytes", ringArguments(setup))],
};

const sentLine = ({ purpose, collective, calls, call_bytes, sent_bytes }) =>
  plainLine(`${purpose}, ${collective}`, "calls · bytes sent in one", `${plainNumber(calls)} · ${bytes(call_bytes)} = ${bytes(sent_bytes)}`);

const CLOSED = ["gpipe", "1f1b", "interleaved-1f1b"];
const loadOf = ({ step }, level) => step.levels.find((one) => one.level === level);

function closed({ schedule, stages, microbatches, chunks, ...pipeline }, notes, name, value) {
  if (!CLOSED.includes(schedule)) return simulated({ schedule, stages, microbatches, ...pipeline }, name, value);
  const interleaved = schedule === "interleaved-1f1b";
  const formula = interleaved ? `interleaved_${name}` : name;
  return [workedLine(notes, formula, interleaved ? { stages, microbatches, chunks } : { stages, microbatches }, ".1%")];
}

const simulated = ({ schedule, stages, microbatches }, name, value) =>
  [plainLine(`Simulated: ${schedule} with ${stages} equal stages, ${microbatches} microbatches, backward twice a forward, free messages.`,
    name, percent(value))];

function utilisationLines(found, notes, convention) {
  const { setup, step } = found;
  const { label, count } = CONVENTIONS.get(convention);
  const value = step.utilisation[convention];
  if (convention === "6nd") {
    return [workedLine(notes, "model_flops_utilization", {
      parameters: parameterCounts(setup.shape).active, tokens_per_gpu_s: step.tokens_per_s_per_gpu,
      peak_flops_per_s: setup.cluster.peak_flops_per_s,
    }, ".1%")];
  }
  return [plainLine(`${convention}: ${label}.`, "tokens/s per GPU · FLOP per token / dense peak",
    `${plainNumber(step.tokens_per_s_per_gpu, 4)} · ${quantity(count(setup.shape, setup.sequence), "FLOP", "si.4")} / ${quantity(setup.cluster.peak_flops_per_s, "FLOP/s", "si.4")} = ${percent(value)}`)];
}

function rowSums({ step }, axis, of, title) {
  const rows = step.communication.filter((row) => familyOf(row.axis) === axis && of(row) > 0);
  return [sumLine(title, rows.map((row) => [`${axisLabel(row.axis)} ${row.purpose} (${row.collective})`, of(row)]),
    rows.reduce((sum, row) => sum + of(row), 0), seconds)];
}

const COLLECTIVES = {
  "all-gather": "ring_all_gather_time", "reduce-scatter": "ring_reduce_scatter_time",
  "all-reduce": "ring_all_reduce_time", "all-to-all": "pairwise_all_to_all_time", send: "point_to_point_time",
};

/** The bandwidth and latency that one call of a row meets; rings share the adapters of a node. */
export function linkOf({ setup: { cluster, parallel } }, row) {
  const { level, near } = groupLink(parallel, row.axis);
  if (level === "scale-up") return { bandwidth_bytes_per_s: cluster.scale_up_bandwidth_bytes_per_s, latency_s: cluster.scale_up_latency_s };
  const ports = ["send", "all-to-all"].includes(row.collective) ? 1 : near;
  const shared = Math.min(cluster.scale_up_bandwidth_bytes_per_s, ports * cluster.network_bandwidth_bytes_per_s);
  return { bandwidth_bytes_per_s: shared, latency_s: cluster.network_latency_s, near };
}

function callLines(found, notes, row) {
  const { near, ...link } = linkOf(found, row);
  const call = { ...link, message_bytes: row.buffer_bytes, ...(row.collective !== "send" && { ranks: row.size }) };
  const each = row.time_s / row.calls;
  // An all-to-all that leaves a node uses both links at once, which no single formula says.
  const mixed = row.collective === "all-to-all" && near > 1;
  const one = mixed
    ? plainLine("Both links at once: the longer of what leaves the node and what stays, and the latencies of its steps.", "one call", seconds(each))
    : workedLine(notes, COLLECTIVES[row.collective], call);
  return [one,
    plainLine("All calls of the step.", "calls · one call", `${plainNumber(row.calls)} · ${seconds(each)} = ${seconds(row.time_s)}`),
    plainLine("Rule of what can hide.", row.rule, `exposed ${seconds(row.exposed_s)}`)];
}

function memoryLines(found, rank, part) {
  const { setup: { recipe, zero_stage, dense_shards, shape } } = found;
  if (!part) {
    return [sumLine(`A GPU of pipeline rank ${rank.pipeline_rank}.`, PARTS.map(([name, label]) => [label, rank.bytes[name]]), rank.total_bytes, bytes)];
  }
  const label = PARTS.find(([name]) => name === part)[1];
  const state = { weights: [3, recipe.weight_bytes], gradients: [2, recipe.gradient_bytes], optimizer: [1, recipe.optimizer_bytes] }[part];
  if (state) {
    const [first, each] = state;
    const shards = zero_stage >= first ? dense_shards : 1;
    const divided = shape.experts && zero_stage >= first ? `; routed experts over ${found.setup.parallel.edp} instead` : "";
    return [plainLine(`${label}, recipe ${recipe.name}, ZeRO ${zero_stage}${divided}.`, "parameters of the rank · bytes of each / ranks that share them",
      `${quantity(rank.parameters, "param", "si")} · ${plainNumber(each)} B / ${shards} ${divided ? "→" : "="} ${bytes(rank.bytes[part])}`)];
  }
  if (part === "activations") {
    return [plainLine("Activations at the peak: microbatches in flight times what their layers keep, on the stages of this rank.",
      `${plainNumber(rank.in_flight)} microbatches in flight, ${rank.layers} layers`, bytes(rank.bytes[part]))];
  }
  const said = {
    recomputed: "All tensors of the one layer that backward computes again.",
    communication: "Buffers of collectives: gathered inputs, keys and values on their way, gathered weights.",
    reserve: "Set aside for contexts, kernels and fragmentation: an assumption, set in the form.",
  };
  return [plainLine(said[part], label, bytes(rank.bytes[part]))];
}
