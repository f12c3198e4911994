// The reader's own model: its keys in an address, and conversion to and from a shape. Pure.

import { FFN_MATRICES, NORM_VECTORS, QK_NORMS } from "../models/shape/model_shape.js";
import { choice, flag, optional, whole } from "./state.js";

const LATENT = ["query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim"];

// Keys of mixers in a state, and a shape's names for them.
const MIXERS = {
  mixer_heads: "mixer_heads", mixer_head_dim: "mixer_head_dim", mixer_state: "state", mixer_groups: "groups",
  mixer_conv: "convolution", mixer_chunk: "chunk", attention_every: "attention_every", attention_first: "attention_first",
};

/** Keys of an own shape with their kinds; a config.json sets the ones that no form shows. */
export const ownKinds = () => ({
  layers: whole(80, 1, 1000), hidden: whole(8192, 64, 100_000), heads: whole(64, 1, 1000),
  kv_heads: whole(8, 1, 1000), head_dim: optional(whole(null, 1, 10_000)), ffn_hidden: whole(28672, 0, 1_000_000),
  ffn: choice("swiglu", [...FFN_MATRICES.keys()]), vocab: whole(128_256, 256, 10_000_000),
  experts: optional(whole(null, 2, 10_000)), top_k: whole(2, 1, 1000), expert_ffn: whole(14_336, 1, 1_000_000),
  shared: whole(0, 0, 1000), dense_layers: whole(0, 0, 1000), tied: flag(false),
  expert_groups: whole(1, 1, 1000), expert_reached: whole(1, 1, 1000),
  ...Object.fromEntries(LATENT.map((key) => [key, optional(whole(null, 0, 100_000))])),
  norm: choice("rmsnorm", [...NORM_VECTORS.keys()]), norms: whole(2, 0, 8), qk_norm: choice("none", QK_NORMS),
  final_norm: flag(true), bias: flag(false), positions: flag(false), extra: whole(0, -(2 ** 40), 2 ** 40),
  window: whole(0, 0, 10_000_000), full_every: whole(0, 0, 1000),
  mixer_heads: optional(whole(null, 1, 100_000)), mixer_head_dim: whole(64, 1, 10_000), mixer_state: whole(128, 1, 100_000),
  mixer_groups: whole(1, 1, 10_000), mixer_conv: whole(4, 1, 100), mixer_chunk: whole(256, 1, 100_000),
  attention_every: whole(0, 0, 1000), attention_first: whole(0, 0, 1000),
});

/** The shape that a state describes, in the form of `shapeOf`. */
export function ownShape(state) {
  const { layers, hidden, heads, kv_heads, ffn_hidden, ffn, vocab, norm, qk_norm, bias, extra, window, full_every } = state;
  const { experts: count, top_k, expert_ffn, shared, dense_layers, expert_groups: groups, expert_reached: reached } = state;
  const latent = state.kv_rank === null ? null : Object.fromEntries(LATENT.map((key) => [key, state[key] ?? 0]));
  return {
    layers, hidden, heads, kv_heads, ffn_hidden, ffn, vocab, norm, qk_norm, bias, extra, window, full_every, latent,
    ...(state.head_dim === null ? {} : { head_dim: state.head_dim }),
    sequence: state.sequence ?? 8192, norms_per_layer: state.norms, tied_embeddings: state.tied,
    learned_positions: state.positions, final_norm: state.final_norm,
    state_space: state.mixer_heads === null ? null
      : Object.fromEntries(Object.entries(MIXERS).map(([key, name]) => [name, state[key]])),
    experts: count === null ? null : { count, top_k, ffn_hidden: expert_ffn, shared, dense_layers, groups, reached },
  };
}

/** The keys of a state that describe `shape`. */
export function ownOf(shape) {
  const { layers, hidden, heads, kv_heads, head_dim, ffn_hidden, ffn, vocab, norm, qk_norm, bias, extra, window, full_every } = shape;
  const { experts, latent, state_space: mixers } = shape;
  const mixture = experts
    ? { experts: experts.count, top_k: experts.top_k, expert_ffn: experts.ffn_hidden, shared: experts.shared,
      dense_layers: experts.dense_layers, expert_groups: experts.groups, expert_reached: experts.reached }
    : { experts: null, shared: 0, dense_layers: 0, expert_groups: 1, expert_reached: 1 };
  return {
    layers, hidden, heads, kv_heads, ffn_hidden, ffn, vocab, norm, qk_norm, bias, extra, window, full_every, ...mixture,
    head_dim: head_dim === hidden / heads ? null : head_dim,
    norms: shape.norms_per_layer, tied: shape.tied_embeddings, positions: shape.learned_positions, final_norm: shape.final_norm,
    ...Object.fromEntries(LATENT.map((key) => [key, latent?.[key] ?? null])),
    ...(mixers ? Object.fromEntries(Object.entries(MIXERS).map(([key, name]) => [key, mixers[name]])) : { mixer_heads: null }),
  };
}
