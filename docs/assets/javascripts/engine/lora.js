// What is trained of a job: everything, or adapters beside frozen matrices; mirrors
// figgen.models.setup.layer_matrices and trained_state.

import { sum } from "./orders.js";
import { FFN_MATRICES } from "./transformer.js";

const PLAIN_BYTES = 2;

/** Matrices of a layer with their widths, as one GPU holds them. */
export function matrices({ shape, parallel: { tp, ep, etp }, kv_heads_per_rank }, experts) {
  const { hidden, heads, head_dim, ffn, latent: mla, experts: mixture } = shape;
  const found = [];
  const put = (part, copies) => (name, inputs, outputs) =>
    found.push({ name, part, inputs, outputs, copies, weights: copies * inputs * outputs });
  const attention = put("attention", 1);
  const query = Math.floor((heads * head_dim) / tp);
  if (!mla) {
    attention("query", hidden, query);
    for (const name of ["key", "value"]) attention(name, hidden, kv_heads_per_rank * head_dim);
    attention("output", query, hidden);
  } else {
    const { query_rank, kv_rank, nope_head_dim: nope, rope_head_dim: rope, value_head_dim: value } = mla;
    attention("query down", hidden, query_rank);
    attention("key-value down", hidden, kv_rank + rope);
    attention("query up", query_rank, Math.floor((heads * (nope + rope)) / tp));
    attention("key-value up", kv_rank, Math.floor((heads * (nope + value)) / tp));
    attention("output", Math.floor((heads * value) / tp), hidden);
  }
  const block = (part, width, copies = 1) => {
    const one = put(part, copies);
    if (FFN_MATRICES[ffn] === 3) one("gate", hidden, width);
    one("up", hidden, width);
    one("down", width, hidden);
  };
  if (!mixture || !experts) block("dense", Math.floor(shape.ffn_hidden / tp));
  else {
    put("router", 1)("router", hidden, mixture.count);
    block("routed", Math.floor(mixture.ffn_hidden / etp), Math.floor(mixture.count / ep));
    if (mixture.shared) block("shared", Math.floor((mixture.shared * mixture.ffn_hidden) / tp));
  }
  return found;
}

/** The same of a layer, whole. */
export const whole = ({ shape }, experts) =>
  matrices({ shape, parallel: { tp: 1, ep: 1, etp: 1 }, kv_heads_per_rank: shape.kv_heads }, experts);
/** Layers of both kinds, those that there are. */
export const kinds = ({ dense_layers, expert_layers }) => [[dense_layers, false], [expert_layers, true]].filter(([layers]) => layers);

/** Whether a matrix has an adapter. */
export function adapted({ lora_rank, lora_matrices: which }, { name, part }) {
  if (lora_rank === null || part === "router") return false;
  if (which === "query-value") return name === "query" || name === "value";
  return which === "all-linear" || part === "attention";
}

const adapterOf = (setup, one) => (adapted(setup, one) ? setup.lora_rank * (one.inputs + one.outputs) : 0);

/** What of a layer of these matrices and so many parameters is trained, and frozen, in bytes. */
export function keptOf(setup, found, left) {
  if (setup.lora_rank === null) return { trained: left, frozen: [0, 0], quantized: 0 };
  const { weight_bytes, output_bytes } = setup.frozen_format;
  const [trained, frozen] = [[0, 0], left.map((count) => count * PLAIN_BYTES)];
  let quantized = 0;
  for (const one of found.filter(({ part }) => part !== "router")) {
    const at = +(one.part === "routed");
    frozen[at] += one.weights * (weight_bytes - PLAIN_BYTES) + one.copies * one.outputs * output_bytes;
    trained[at] += one.copies * adapterOf(setup, one);
    if (weight_bytes < PLAIN_BYTES) quantized += one.weights;
  }
  return { trained, frozen, quantized };
}

/** So many of several kept things, and `plain` parameters without adapters. */
export function keptSum({ lora_rank }, counts, plain = 0) {
  const both = (name) => [0, 1].map((at) => sum(counts.map(([count, kept]) => count * kept[name][at])));
  const [trained, frozen] = [both("trained"), both("frozen")];
  if (lora_rank === null) trained[0] += plain;
  else frozen[0] += plain * PLAIN_BYTES;
  return { trained, frozen, quantized: sum(counts.map(([count, { quantized }]) => count * quantized)) };
}

/** Weights of adapters that a token meets in each part of a layer, all TP ranks together. */
export function adapterWeights(setup) {
  const { shape, parallel: { tp, etp } } = setup;
  const found = { attention: 0, up_projections: 0, dense: 0, routed: 0, shared: 0 };
  for (const [, experts] of kinds(shape)) {
    for (const one of matrices(setup, experts)) {
      const [{ part }, weights] = [one, adapterOf(setup, one)];
      if (!weights) continue;
      if (part === "routed") found.routed += shape.experts.top_k * etp * weights;
      else if (part !== "attention" || !experts || !shape.dense_layers) {
        found[part] += tp * weights;
        if (part === "attention" && /up/.test(one.name)) found.up_projections += tp * weights;
      }
    }
  }
  return found;
}

/** Weights whose input gradient the first layer does not need, `tp` ranks together. */
export function firstInputs(setup, tp = 1) {
  const { lora_rank: rank } = setup;
  if (rank === null) return 0;
  const reading = whole(setup, false).filter(({ part, name }) => part === "attention" && !/output|up/.test(name));
  const thin = sum(reading.map((one) => (adapted(setup, one) ? rank * one.inputs : 0)));
  return sum(reading.map(({ weights }) => weights)) + tp * thin;
}

/** Parameters of adapters in the whole model, and those that one token meets. */
export function adapterCounts(setup) {
  const { shape } = setup;
  let [trained_parameters, met] = [0, 0];
  for (const [layers, experts] of kinds(shape)) {
    for (const one of whole(setup, experts)) {
      const each = layers * adapterOf(setup, one);
      trained_parameters += one.copies * each;
      met += (one.part === "routed" ? shape.experts.top_k : 1) * each;
    }
  }
  return { trained_parameters, met };
}

/** The parts of a layer's matrices with adapters, one for each. */
export const adaptedParts = (setup, experts) =>
  matrices(setup, experts).filter((one) => adapted(setup, one)).map(({ part }) => part);
