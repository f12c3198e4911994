// One training step and its memory, as `figgen step --json` and `figgen memory --json` print them but
// for the words of rules.js;
// mirrors figgen.models.step.step, step_rows, level_loads and gradient_buckets.

import {
  efficiency_with_overlap, efficiency_without_overlap, exposed_communication_time, ridge_point,
} from "../step-formulas.js";
import { stagesHeld } from "./held.js";
import { adapterCounts, firstInputs } from "./lora.js";
import { NETWORK, SCALE_UP, groupLink, portBytes } from "./links.js";
import { memoryOf } from "./memory.js";
import { addedTo } from "./newton_schulz.js";
import { sum } from "./orders.js";
import { simulate } from "./simulate.js";
import { bucketedExposed, repeatedFlops, stageTime } from "./stage_time.js";
import { durations } from "./trace.js";
import { BACKWARD, END, FORWARD, GRADIENTS, START, TIED } from "./traffic.js";
import { CONVENTIONS, matmulParameters } from "./transformer.js";

export { usualOf } from "./setup.js";

export const FAMILIES = { "dp-cp": "dp", edp: "dp", embedding: "dp" };
const MOST_BUCKETS = 1024;

const most = (values) => Math.max(...values);

/** What every pipeline rank needs, part by part, and whether it fits. */
export const trainingMemory = (setup) => ({ ...described(setup), ...memoryOf(setup) });

/** The step of the pipeline rank that works longest: its parts, its communication, its links. */
export function trainingStep(setup) {
  const { stages, trace, ...found } = carriedOut(setup);
  return {
    ...described(setup),
    accelerator: setup.accelerator,
    nic: setup.nic,
    compute_efficiency: setup.compute_efficiency,
    software: setup.software,
    ...intervalOf(setup, found),
    ...found,
    ...addedTo(setup, found.step_time_s),
  };
}

// Where eight of ten runs of the class were measured, where the time is a prediction.
const intervalOf = ({ predicted }, { step_time_s: time }) => predicted
  ? { step_time_interval_s: predicted.range.map((share) => share * time), interval_of: predicted.interval_of } : {};

/**
 * The step as it runs: the trace of the simulated pipeline, and the seconds before its first
 * forward and after its last backward; `trace.start[rank][at]` belongs to `orders[rank][at]`.
 */
export function timeline(setup) {
  const { stages, trace, before_s, after_s } = carriedOut(setup, true);
  return { stages, trace, before_s, after_s };
}

function described(setup) {
  const { tp, cp, dp, pp, ep, etp, edp, world_size } = setup.parallel;
  const { model, schedule, microbatches, microbatch_size, sequence, tokens_per_step } = setup;
  return {
    model, world_size, tp, cp, dp, pp, ep, etp, edp,
    schedule, microbatches, microbatch_size, sequence, tokens_per_step,
    zero_stage: setup.zero_stage, recipe: setup.recipe.name, recompute: setup.recompute,
    activations: setup.activations, ...loraOf(setup),
  };
}

function loraOf(setup) {
  const { lora_rank, lora_matrices, frozen_weights } = setup;
  if (lora_rank === null) return {};
  return { lora_rank, lora_matrices, frozen_weights, trained_parameters: adapterCounts(setup).trained_parameters };
}

function carriedOut(setup, onlyTrace = false) {
  const { order, parallel, tokens_per_step } = setup;
  const held = stagesHeld(setup);
  const stages = setup.shares.map((_, stage) => stageTime(setup, held, stage));
  const trace = simulate(order, timesOf(setup, stages, hop(stages)));
  const [before_s, after_s] = outlasting(setup, stages, trace);
  if (onlyTrace) return { stages, trace, before_s, after_s };
  const atOnce = simulate(order, timesOf(setup, stages, 0));
  const longest = most(atOnce.busy) * (1 - 1e-9);
  const rank = atOnce.busy.findIndex((busy_s) => busy_s >= longest);
  const [compute_s, recompute_s] = workOf(setup, stages, rank);
  const rows = withinMicrobatches(setup, stages, rank, atOnce.busy[rank] - compute_s - recompute_s);
  const messages_s = trace.makespan - atOnce.makespan;
  const exposed_s = byAxis(rows);
  const idle_s = atOnce.makespan - compute_s - recompute_s - sum(Object.values(exposed_s));
  const bubble_s = Math.abs(idle_s) > 1e-12 * atOnce.makespan ? idle_s : 0;
  exposed_s.dp += before_s + after_s;
  exposed_s.pp += messages_s;
  shared(rows, (row) => row.when === START, before_s);
  shared(rows, (row) => row.when === END, after_s);
  shared(rows, (row) => row.axis === "pp", messages_s);
  const step_time_s = before_s + trace.makespan + after_s;
  const computing_s = compute_s + recompute_s;
  const tokens_per_s_per_gpu = tokens_per_step / step_time_s / parallel.world_size;
  const utilisation = utilisations(setup, tokens_per_s_per_gpu);
  return {
    stages, trace, pipeline_rank: rank, step_time_s, compute_s, recompute_s, bubble_s,
    bubble_fraction: bubble_s / step_time_s,
    bubble_overhead: bubble_s / computing_s,
    exposed_s, tokens_per_s_per_gpu,
    model_flops_utilisation: utilisation["6nd+attention"],
    hardware_flops_utilisation:
      utilisation["6nd+attention"] + (tokens_per_s_per_gpu * repeatedFlops(setup)) / setup.cluster.peak_flops_per_s,
    utilisation,
    levels: levelLoads(setup, rows, computing_s),
    gradient_buckets: gradientBuckets(setup, setup.stagesOf[rank].map((stage) => stages[stage])),
    communication: rows,
  };
}

// Without gradients of frozen weights, and with adapters.
function utilisations(setup, rate) {
  const { shape, sequence, cluster, lora_rank } = setup;
  const unneeded = lora_rank === null ? 0 : 2 * (matmulParameters(shape) + firstInputs(setup)) - 6 * adapterCounts(setup).met;
  const found = {};
  for (const [name, count] of CONVENTIONS) {
    const perToken = count(shape, sequence);
    found[name] = perToken === null ? null : (rate * (perToken - unneeded)) / cluster.peak_flops_per_s;
  }
  return found;
}

// Times for the simulator: computing plus what each forward and backward exposes.
function timesOf(setup, stages, latency) {
  const forward = stages.map((stage) => stage.forward_s + stage.exposed[FORWARD]);
  const backward_input = stages.map(
    (stage) => stage.recomputed_s + stage.backward_input_s + stage.exposed[BACKWARD]);
  const backward_weight = stages.map((stage) => stage.backward_weight_s);
  const times = { forward, backward_input, backward_weight, latency };
  if (!setup.order.overlapped.size) return durations(times);
  // What a pair computes, and what it exposes: either half computes while the other sends.
  const overlapped_pair = [];
  for (const [one, other] of setup.stagesOf) {
    for (const [f, b] of [[one, other], [other, one]]) {
      const [first, second] = [stages[f], stages[b]];
      overlapped_pair[f] = most([
        forward[f], backward_input[b] + backward_weight[b], first.forward_s + second.backward_s,
        first.exposed[FORWARD] + second.exposed[BACKWARD],
      ]);
    }
  }
  return durations({ ...times, overlapped_pair });
}

// Delay of a message between pipeline ranks.
function hop(stages) {
  const sends = stages.flatMap((stage) => stage.traffic.filter((entry) => entry.axis === "pp"));
  return most([0, ...sends.map((entry) => entry.call.total_s)]);
}

// Seconds that a pipeline rank computes in a step, and computes again.
function workOf({ stagesOf, passing }, stages, rank) {
  let [compute, again] = [0, 0];
  for (const at of stagesOf[rank]) {
    const { forward_s, backward_input_s, backward_weight_s, recomputed_s } = stages[at];
    compute += passing * (forward_s + backward_input_s + backward_weight_s);
    again += passing * recomputed_s;
  }
  return [compute, again];
}

// One row for each kind of call of a rank; pairs of DualPipe hide some of what a row exposes.
function withinMicrobatches(setup, stages, rank, added_s) {
  const rows = rankRows(setup, stages, rank);
  const nominal = sum(rows.map((row) => row.exposed_s));
  if (setup.order.overlapped.size && nominal) {
    for (const row of rows) row.exposed_s *= added_s / nominal;
  }
  return rows;
}

function rankRows(setup, stages, rank) {
  const found = new Map();
  for (const stage of setup.stagesOf[rank]) {
    for (const entry of stages[stage].traffic) {
      const times = entry.per_microbatch ? setup.passing : 1;
      const when = entry.per_microbatch ? "microbatch" : entry.phase;
      const { axis, purpose, collective, size, buffer_bytes, sent_bytes, link } = entry;
      const key = [axis, purpose, collective, when, buffer_bytes].join("|");
      const row = found.get(key) ?? {
        axis, purpose, collective, when, size, calls: 0, buffer_bytes, call_bytes: sent_bytes,
        level: link.level, time_s: 0, exposed_s: 0, sent_bytes: 0,
      };
      row.calls += times * entry.calls;
      row.time_s += times * entry.time_s;
      row.exposed_s += times * entry.exposed_s;
      row.sent_bytes = row.calls * row.call_bytes;
      found.set(key, row);
    }
  }
  return [...found.values()];
}

// Deals exposed seconds to the marked rows in proportion to their time.
function shared(rows, marked, seconds) {
  const mine = rows.filter(marked);
  const total = sum(mine.map((row) => row.time_s));
  if (total) for (const row of mine) row.exposed_s += (seconds * row.time_s) / total;
}

function byAxis(rows) {
  const found = { tp: 0, cp: 0, ep: 0, etp: 0, dp: 0, pp: 0 };
  for (const row of rows) found[FAMILIES[row.axis] ?? row.axis] += row.exposed_s;
  return found;
}

// Seconds by which weights delay the first forward and gradients the end of the step.
function outlasting(setup, stages, { start, end, makespan }) {
  let [before, after] = [0, 0];
  setup.stagesOf.forEach((held, rank) => {
    const mine = held.map((stage) => stages[stage]);
    const once = (phase) => mine.flatMap((s) => s.traffic.filter((entry) => entry.phase === phase));
    const forward = sum(mine.map((stage) => stage.forward_s + stage.exposed[FORWARD]));
    before = Math.max(before, onceExposed(setup, once(START), forward) - start[rank][0]);
    const backward = sum(mine.map((stage) => stage.backward_s + stage.exposed[BACKWARD]));
    const late = onceExposed(setup, once(END), backward);
    after = Math.max(after, end[rank].at(-1) + late - makespan);
  });
  return [before, after];
}

// What calls once per step add to the one forward or backward that they can hide behind.
export function onceExposed(setup, entries, compute_s) {
  const time = (some) => sum(some.map((entry) => entry.time_s));
  const tied = time(entries.filter((entry) => entry.purpose === TIED));
  const bucketed = entries.filter((entry) => entry.purpose !== TIED);
  if (!setup.overlap_data_parallel) return tied + time(bucketed);
  return tied + bucketedExposed(bucketed, compute_s);
}

// What the step puts on each level of links, and the bandwidth from which on nothing would wait.
function levelLoads({ cluster, compute_efficiency, parallel }, rows, compute_s) {
  const rate = cluster.peak_flops_per_s * compute_efficiency;
  const levels = [
    [SCALE_UP, cluster.scale_up_bandwidth_bytes_per_s],
    [NETWORK, cluster.network_bandwidth_bytes_per_s],
  ];
  return levels.flatMap(([level, bandwidth_bytes_per_s], at) => {
    const port_bytes = sum(
      rows.map((row) => row.calls * portBytes(row, groupLink(parallel, row.axis))[at]));
    if (!port_bytes) return [];
    const mine = rows.filter((row) => row.level === level);
    const ccr = (compute_s * rate) / port_bytes;
    const ridge = ridge_point({ peak_flops_per_s: rate, bandwidth_bytes_per_s });
    return [{
      level, bandwidth_bytes_per_s, port_bytes,
      time_s: sum(mine.map((row) => row.time_s)),
      exposed_s: sum(mine.map((row) => row.exposed_s)),
      needed_bandwidth_bytes_per_s: port_bytes / compute_s,
      ccr, ridge,
      efficiency_with_overlap: efficiency_with_overlap({ ccr, ridge }),
      efficiency_without_overlap: efficiency_without_overlap({ ccr, ridge }),
    }];
  });
}

// Buckets of a rank's gradients as they are and at their best; null where nothing is bucketed.
function gradientBuckets(setup, mine) {
  const { dense_data_axis: axis, sharded } = setup;
  const timed = sharded.scatters ? mine.slice(0, 1) : mine;
  const entries = timed.flatMap(({ traffic }) =>
    traffic.filter((entry) => entry.purpose === GRADIENTS && entry.axis === axis));
  if (!entries.length || sharded.gathers) return null;
  const buckets = sum(entries.map((entry) => entry.calls));
  const communication_s = sum(entries.map((entry) => entry.calls * entry.call.bytes_s));
  const compute_s = sharded.scatters
    ? timed[0].backward_s
    : sum(timed.map((stage) => stage.backward_s + stage.exposed[BACKWARD]));
  const overhead_s = entries[0].call.latency_s;
  const exposed = (number) => exposed_communication_time({
    communication_s, compute_s, buckets: number, bucket_overhead_s: overhead_s,
  });
  let [best_buckets, best_exposed_s] = [1, exposed(1)];
  for (let number = 2; number <= MOST_BUCKETS; number++) {
    const exposed_s = exposed(number);
    if (exposed_s > best_exposed_s) break;
    if (exposed_s < best_exposed_s) [best_buckets, best_exposed_s] = [number, exposed_s];
  }
  return {
    axis, communication_s, compute_s, overhead_s, buckets, exposed_s: exposed(buckets),
    best_buckets, best_exposed_s,
  };
}
