// Time of one microbatch on a virtual stage: computing, and what communication adds to it; mirrors
// figgen.models.step.stage_time and stage_work.

import { exposed_communication_time, prefetched_gather_time } from "../step-formulas.js";
import { callTime, groupLink } from "./links.js";
import { adapterWeights, firstInputs } from "./lora.js";
import { sum } from "./orders.js";
import { partsOf, repeatedParts } from "./recomputation.js";
import {
  AGAIN, BACKWARD, BOUNDARY, FORWARD, GRADIENTS, HEAD_AGAIN, KEYS, WEIGHTS, stageTraffic,
} from "./traffic.js";
import { FFN_MATRICES, attentionWeights, ffnWeights, mixerFlops, mixerWeights, upProjectionWeights, windowedKeys } from "./transformer.js";

/** Share of the memory's rate at which quantized weights become 16 bits wide. */
export const UNPACKED_SHARE = 0.14;

/** Seconds in which a pass makes 16 bits of what is quantized: products cannot read it as it is. */
export const unpackingTime = ({ cluster, frozen_format }, { kept }) =>
  (kept.quantized * (frozen_format.weight_bytes + 2)) / (cluster.memory_bandwidth_bytes_per_s * UNPACKED_SHARE);

/** Seconds of one microbatch on a virtual stage, and its timed communication. */
export function stageTime(setup, held, stage) {
  const { cluster, parallel } = setup;
  const rate = cluster.peak_flops_per_s * setup.compute_efficiency;
  const work = stageWork(setup, setup.shares[stage]);
  const unpacking_s = unpackingTime(setup, held[stage]);
  const products = work.weights + work.adapters;
  const bare = {
    forward_s: (products + work.core) / rate + unpacking_s,
    recomputed_s: work.recomputed / rate + work.repeats * unpacking_s,
    backward_input_s: (products - work.spared + 2 * work.core) / rate + unpacking_s,
    backward_weight_s: (setup.lora_rank === null ? work.weights : work.adapters) / rate,
  };
  bare.backward_s = bare.recomputed_s + bare.backward_input_s + bare.backward_weight_s;
  const blocks = ringBlocks(setup, setup.shares[stage], rate);
  const traffic = stageTraffic(setup, held, stage).map((entry) => {
    const link = groupLink(parallel, entry.axis);
    const call = callTime(entry, link, cluster);
    const timed = { ...entry, link, call, time_s: entry.calls * call.total_s };
    return { ...timed, exposed_s: exposedOf(setup, timed, work.weights / rate, blocks) };
  });
  for (const [phase, compute_s] of [[FORWARD, bare.forward_s], [BACKWARD, bare.backward_s]]) {
    shareOut(setup, traffic, phase, compute_s);
  }
  const exposed = { [FORWARD]: 0, [BACKWARD]: 0 };
  for (const entry of traffic) exposed[entry.phase] += entry.exposed_s;
  return { ...bare, traffic, exposed };
}

// Work of a virtual stage in FLOPs, divided over its tensor- and context-parallel ranks.
export function stageWork(setup, share) {
  const { shape, tokens, parallel: { tp } } = setup;
  const [forward, again] = [partsOf(share), repeatedParts(setup, share)];
  const flops = (met) => (2 * met * tokens) / tp;
  const adapters = adapterWeights(setup);
  const beside = (parts) => flops(sum(Object.keys(adapters).map((name) => parts[name] * adapters[name])));
  const [layers, repeated] = [forward, again].map((parts) => flops(weightsMet(shape, parts)));
  return {
    weights: layers + (share.head ? flops(shape.vocab * shape.hidden) * (1 + share.mtp_layers) : 0),
    core: coreFlops(setup, forward),
    recomputed: repeated + coreFlops(setup, again) + secondFlops(setup, share) + beside(again),
    repeats: layers ? repeated / layers : 0,
    adapters: beside(forward),
    spared: share.embedding && share.layers ? flops(firstInputs(setup, tp)) : 0,
  };
}

/** What backward computes again of a token, in all stages, attention over the whole square. */
export function repeatedFlops(setup) {
  const { shares, placement, tokens, parallel: { tp } } = setup;
  const halved = (share) => (setup.flash_attention ? coreFlops(setup, { ...repeatedParts(setup, share), mixers: 0 }) : 0);
  const again = (share) => stageWork(setup, share).recomputed + halved(share);
  return (sum(shares.slice(0, placement.depth).map(again)) * tp) / tokens;
}

// Products that "every_second_product" runs again: keys and outputs, what a gate multiplies.
function secondFlops({ recomputed, shape, tokens, parallel: { tp } }, { layers, dense_layers, mixer_layers }) {
  if (!recomputed.modules.has("every_second_product")) return 0;
  let met = 0;
  if (!shape.latent) met += ((layers - mixer_layers) * attentionWeights(shape)) / 2;
  if (FFN_MATRICES[shape.ffn] === 3 && !recomputed.modules.has("mlp")) {
    met += (dense_layers * ffnWeights(shape, shape.ffn_hidden)) / 3;
  }
  return (2 * met * tokens) / tp;
}

function layerCoreFlops({ tokens, sequence, shape, parallel, flash_attention }, windowed) {
  const keys = windowed && flash_attention ? windowedKeys(sequence, shape.window) : sequence;
  const whole = (4 * tokens * keys * shape.attention_width) / parallel.tp;
  return flash_attention ? whole / 2 : whole;
}

const coreFlops = (setup, { core, windowed, mixers }) =>
  (core - windowed) * layerCoreFlops(setup, false)
  + (mixers * mixerFlops(setup.shape) * setup.tokens) / setup.parallel.tp + windowed * layerCoreFlops(setup, true);

// Shares of the layers, full and windowed, each with its attention to one block of keys.
function ringBlocks(setup, { layers, windowed_layers }, rate) {
  const windowed = layers ? windowed_layers / layers : 0;
  return [[1 - windowed, false], [windowed, true]].map(([part, kind]) =>
    [part, layerCoreFlops(setup, kind) / rate / setup.parallel.cp]);
}

// Weights that one token is multiplied with in these parts of layers.
function weightsMet(shape, parts) {
  const { experts } = shape;
  let met = parts.attention * attentionWeights(shape) + parts.mixers * mixerWeights(shape);
  met += parts.up_projections * upProjectionWeights(shape);
  met += parts.dense * ffnWeights(shape, shape.ffn_hidden) + parts.projections * 2 * shape.hidden ** 2;
  if (!experts) return met;
  const one = ffnWeights(shape, experts.ffn_hidden);
  met += parts.shared * experts.shared * one;
  return met + parts.routed * (experts.top_k * one + shape.hidden * experts.count);
}

/** Whether blocks of keys arrive in one buffer while another one is read. */
export const inTurns = (setup) => setup.context_exchange === "p2p" && setup.double_buffering;

// What an entry adds to its forward or backward, data parallelism apart.
function exposedOf(setup, { purpose, per_microbatch, time_s, calls, call }, products_s, blocks) {
  if (!per_microbatch || [GRADIENTS, WEIGHTS, BOUNDARY].includes(purpose)) return 0;
  if (purpose === AGAIN || purpose === HEAD_AGAIN) return Math.max(0, time_s - products_s);
  if (purpose === KEYS && inTurns(setup)) {
    return calls * blocks.reduce((sum, [part, block_s]) => sum + part * Math.max(0, call.total_s - block_s), 0);
  }
  return time_s;
}

// Gives the calls of sharded data parallelism their part of what does not hide.
function shareOut(setup, traffic, phase, compute_s) {
  const sharded = traffic.filter(
    (entry) => entry.phase === phase && (entry.purpose === GRADIENTS || entry.purpose === WEIGHTS));
  const total = sum(sharded.map((entry) => entry.time_s));
  if (!total) return;
  const exposed = shardedExposed(setup, sharded, compute_s, total);
  for (const entry of sharded) entry.exposed_s = (exposed * entry.time_s) / total;
}

// ZeRO-2 and 3 within one forward or backward.
function shardedExposed(setup, entries, compute_s, total) {
  if (!setup.overlap_data_parallel) return total;
  if (!setup.sharded.gathers) return bucketedExposed(entries, compute_s);
  if (!setup.double_buffering) return total;
  const layers = Math.max(...entries.map((entry) => entry.calls));
  const [layer_compute_s, gather_s] = [compute_s / layers, total / layers];
  return prefetched_gather_time({ layers, gather_s, layer_compute_s }) - compute_s;
}

/** What buckets that become ready evenly over `compute_s` add to it, one after the other. */
export function bucketedExposed(entries, compute_s) {
  let [buckets, communication_s, latency_s] = [0, 0, 0];
  for (const { calls, call } of entries) {
    buckets += calls;
    communication_s += calls * call.bytes_s;
    latency_s += calls * call.latency_s;
  }
  if (!buckets) return 0;
  const bucket_overhead_s = latency_s / buckets;
  return exposed_communication_time({ communication_s, compute_s, buckets, bucket_overhead_s });
}
