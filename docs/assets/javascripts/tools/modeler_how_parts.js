// Worked lines of the modeler that need more than a formula: utilisation, calls, memory. Pure.

import { groupLink } from "../engine/links.js";
import { CONVENTIONS, parameterCounts } from "../engine/transformer.js";
import { workedLine } from "../engine/worked.js";
import { PARTS, axisLabel, familyOf } from "./modeler_model.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { plainLine, sumLine } from "./worked.js";

export const sentLine = ({ purpose, collective, calls, call_bytes, sent_bytes }) =>
  plainLine(
    `${purpose}, ${collective}`,
    "calls · bytes sent in one",
    `${plainNumber(calls)} · ${bytes(call_bytes)} = ${bytes(sent_bytes)}`,
  );

export function utilisationLines(found, notes, convention) {
  const { setup, step } = found;
  const { label, count } = CONVENTIONS.get(convention);
  const value = step.utilisation[convention];
  if (convention === "6nd") {
    return [
      workedLine(
        notes,
        "model_flops_utilization",
        {
          parameters: parameterCounts(setup.shape).active,
          tokens_per_gpu_s: step.tokens_per_s_per_gpu,
          peak_flops_per_s: setup.cluster.peak_flops_per_s,
        },
        ".1%",
      ),
    ];
  }
  return [
    plainLine(
      `${convention}: ${label}.`,
      "tokens/s per GPU · FLOP per token / dense peak",
      `${plainNumber(step.tokens_per_s_per_gpu, 4)} · ${quantity(count(setup.shape, setup.sequence), "FLOP", "si.4")} / ${quantity(setup.cluster.peak_flops_per_s, "FLOP/s", "si.4")} = ${percent(value)}`,
    ),
  ];
}

export function rowSums({ step }, axis, of, title) {
  const rows = step.communication.filter((row) => familyOf(row.axis) === axis && of(row) > 0);
  return [
    sumLine(
      title,
      rows.map((row) => [`${axisLabel(row.axis)} ${row.purpose} (${row.collective})`, of(row)]),
      rows.reduce((sum, row) => sum + of(row), 0),
      seconds,
    ),
  ];
}

const COLLECTIVES = {
  "all-gather": "ring_all_gather_time",
  "reduce-scatter": "ring_reduce_scatter_time",
  "all-reduce": "ring_all_reduce_time",
  "all-to-all": "pairwise_all_to_all_time",
  send: "point_to_point_time",
};

/** The bandwidth and latency that one call of a row meets; rings share the adapters of a node. */
export function linkOf({ setup: { cluster, parallel } }, row) {
  const { level, near } = groupLink(parallel, row.axis);
  if (level === "scale-up")
    return { bandwidth_bytes_per_s: cluster.scale_up_bandwidth_bytes_per_s, latency_s: cluster.scale_up_latency_s };
  const ports = ["send", "all-to-all"].includes(row.collective) ? 1 : near;
  const shared = Math.min(cluster.scale_up_bandwidth_bytes_per_s, ports * cluster.network_bandwidth_bytes_per_s);
  return { bandwidth_bytes_per_s: shared, latency_s: cluster.network_latency_s, near };
}

export function callLines(found, notes, row) {
  const { near, ...link } = linkOf(found, row);
  const call = { ...link, message_bytes: row.buffer_bytes, ...(row.collective !== "send" && { ranks: row.size }) };
  const each = row.time_s / row.calls;
  // An all-to-all that leaves a node uses both links at once, which no single formula says.
  const mixed = row.collective === "all-to-all" && near > 1;
  const one = mixed
    ? plainLine(
        "Both links at once: the longer of what leaves the node and what stays, and the latencies of its steps.",
        "one call",
        seconds(each),
      )
    : workedLine(notes, COLLECTIVES[row.collective], call);
  return [
    one,
    plainLine(
      "All calls of the step.",
      "calls · one call",
      `${plainNumber(row.calls)} · ${seconds(each)} = ${seconds(row.time_s)}`,
    ),
    plainLine("Rule of what can hide.", row.rule, `exposed ${seconds(row.exposed_s)}`),
  ];
}

export function memoryLines(found, rank, part) {
  const {
    setup: { recipe, zero_stage, dense_shards, shape },
  } = found;
  if (!part) {
    return [
      sumLine(
        `A GPU of pipeline rank ${rank.pipeline_rank}.`,
        PARTS.map(([name, label]) => [label, rank.bytes[name]]),
        rank.total_bytes,
        bytes,
      ),
    ];
  }
  const label = PARTS.find(([name]) => name === part)[1];
  const state = {
    weights: [3, recipe.weight_bytes],
    gradients: [2, recipe.gradient_bytes],
    optimizer: [1, recipe.optimizer_bytes],
  }[part];
  if (state) {
    const [first, each] = state;
    const shards = zero_stage >= first ? dense_shards : 1;
    const divided =
      shape.experts && zero_stage >= first ? `; routed experts over ${found.setup.parallel.edp} instead` : "";
    return [
      plainLine(
        `${label}, recipe ${recipe.name}, ZeRO ${zero_stage}${divided}.`,
        "parameters of the rank · bytes of each / ranks that share them",
        `${quantity(rank.parameters, "param", "si")} · ${plainNumber(each)} B / ${shards} ${divided ? "→" : "="} ${bytes(rank.bytes[part])}`,
      ),
    ];
  }
  if (part === "activations") {
    return [
      plainLine(
        "Activations at the peak: microbatches in flight times what their layers keep, on the stages of this rank.",
        `${plainNumber(rank.in_flight)} microbatches in flight, ${rank.layers} layers`,
        bytes(rank.bytes[part]),
      ),
    ];
  }
  const said = {
    recomputed: "All tensors of the one layer that backward computes again.",
    communication: "Buffers of collectives: gathered inputs, keys and values on their way, gathered weights.",
    reserve: "Set aside for contexts, kernels and fragmentation: an assumption, set in the form.",
  };
  return [plainLine(said[part], label, bytes(rank.bytes[part]))];
}
