// A transformer's size: its shape, checked, its parameters, and FLOPs of a token by convention;
// mirrors figgen.models.shape.model_shape, transformer and compute.

import { InputError } from "./errors.js";

/** Weight matrices of one feed-forward block, and parameters of one normalisation per channel. */
export const FFN_MATRICES = { gelu: 2, relu: 2, "squared-relu": 2, geglu: 3, swiglu: 3 };
export const NORM_VECTORS = { layernorm: 2, "layernorm-no-bias": 1, rmsnorm: 1 };
export const QK_NORMS = ["none", "per-head", "full-width"];

const USUAL = {
  ffn: "swiglu", norm: "rmsnorm", norms_per_layer: 2, final_norm: true, qk_norm: "none",
  bias: false, tied_embeddings: false, learned_positions: false, extra: 0,
  window: 0, full_every: 0,
};
const SIZES = ["layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "sequence"];
const WINDOWS = ["window", "full_every"];
// What is beyond it is a slip of the pen.
const LARGEST = 2 ** 40;

/**
 * A shape from what differs from the usual. `experts` is { count, top_k, ffn_hidden, shared,
 * dense_layers }, `latent` { query_rank, kv_rank, nope_head_dim, rope_head_dim, value_head_dim }.
 * `kv_heads` is `heads` and `head_dim` hidden / heads when left out. Throws InputError.
 */
export function modelShape(given) {
  const shape = { ...USUAL, experts: null, latent: null, state_space: null, ...given };
  shape.kv_heads ??= shape.heads;
  shape.head_dim ??= shape.hidden / shape.heads;
  for (const name of SIZES) {
    whole(`${name} of a model`, shape[name]);
    if (shape[name] < 1) throw new InputError(`${name} of a model`, { expected: ">= 1", got: shape[name] });
  }
  if (shape.heads % shape.kv_heads) {
    const expected = `a divisor of ${shape.heads} heads`;
    throw new InputError("kv_heads of a model", { expected, got: shape.kv_heads });
  }
  choice("ffn", shape.ffn, Object.keys(FFN_MATRICES));
  choice("norm", shape.norm, Object.keys(NORM_VECTORS));
  choice("qk_norm", shape.qk_norm, QK_NORMS);
  for (const name of ["ffn_hidden", "norms_per_layer", "extra", ...WINDOWS]) whole(`${name} of a model`, shape[name]);
  for (const name of WINDOWS) {
    if (shape[name] < 0) throw new InputError(`${name} of a model`, { expected: ">= 0", got: shape[name] });
  }
  if (shape.experts) shape.experts = expertShape(shape.experts, shape.layers);
  if (shape.state_space) shape.state_space = stateSpace(shape.state_space, shape);
  const mla = shape.latent;
  for (const name in mla) whole(`${name} of a model`, mla[name]);
  const key = mla && mla.nope_head_dim + mla.rope_head_dim;
  shape.dense_layers = shape.experts ? shape.experts.dense_layers : shape.layers;
  shape.expert_layers = shape.layers - shape.dense_layers;
  shape.attention_width = mla
    ? Math.floor((shape.heads * (key + mla.value_head_dim)) / 2)
    : shape.heads * shape.head_dim;
  return Object.freeze(shape);
}

function expertShape(given, layers) {
  const experts = { shared: 0, dense_layers: 0, ...given };
  for (const name in experts) whole(`${name} of a model`, experts[name]);
  const { count, top_k, dense_layers, ffn_hidden } = experts;
  if (ffn_hidden < 1) throw new InputError("ffn_hidden of an expert", { expected: ">= 1", got: ffn_hidden });
  if (!(top_k >= 1 && top_k <= count)) {
    throw new InputError("top_k of a model", { expected: `1 to ${count}`, got: top_k });
  }
  if (!(dense_layers >= 0 && dense_layers < layers)) {
    const expected = `0 to ${layers - 1}`;
    throw new InputError("dense_layers of a model", { expected, got: dense_layers });
  }
  return Object.freeze(experts);
}

// Mamba-2 mixers with their widths.
function stateSpace(mixers, { latent, window, qk_norm }) {
  const { mixer_heads, mixer_head_dim, state, groups } = mixers;
  if (mixer_heads % groups) {
    throw new InputError("groups of a mixer", { expected: `a divisor of ${mixer_heads} heads`, got: groups });
  }
  if (latent || window || qk_norm !== "none") {
    const expected = "plain: no latent vectors, windows or norms of queries and keys";
    throw new InputError("attention beside state-space layers", { expected });
  }
  const inner = mixer_heads * mixer_head_dim;
  return Object.freeze({ ...mixers, inner, projected: 2 * inner + 2 * groups * state + mixer_heads });
}

/** How many of so many layers, from number `first` on, have a mixer and no attention. */
export function mixerLayers({ state_space: mixers }, first, layers) {
  if (!mixers) return 0;
  const { attention_every: every, attention_first: start } = mixers;
  const before = (layer) => (every ? Math.max(0, Math.ceil((layer - start) / every)) : 0);
  return layers - before(first + layers) + before(first);
}

/** Weights of a mixer's projections, all its parameters, and FLOPs of a token in its core. */
export const mixerWeights = ({ hidden, state_space: mixers }) => (mixers ? hidden * (mixers.projected + mixers.inner) : 0);
export function mixerParameters(shape) {
  const mixers = shape.state_space;
  if (!mixers) return 0;
  const { inner, groups, state, convolution, mixer_heads } = mixers;
  return mixerWeights(shape) + (inner + 2 * groups * state) * (convolution + 1) + inner + 3 * mixer_heads;
}
export function mixerFlops({ state_space: mixers }) {
  if (!mixers) return 0;
  const { inner, groups, state, chunk } = mixers;
  return 2 * chunk * (groups * state + inner) + 4 * state * inner;
}

function whole(what, size) {
  if (Number.isInteger(size) && Math.abs(size) <= LARGEST) return;
  throw new InputError(what, { expected: "a whole number", got: size });
}

function choice(what, got, known) {
  if (known.includes(got)) return;
  throw new InputError(`${what} of a model`, { expected: known.join(" or "), got });
}

/** Weights of the projections of one attention block. */
export function attentionWeights({ hidden, heads, kv_heads, head_dim, latent: mla }) {
  if (!mla) return 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim;
  const atOnce = mla.query_rank ? 0 : heads * (mla.nope_head_dim + mla.rope_head_dim);
  const down = hidden * (mla.query_rank + mla.kv_rank + mla.rope_head_dim + atOnce);
  return down + upProjectionWeights({ heads, latent: mla }) + heads * mla.value_head_dim * hidden;
}

/** Weights that make the queries, keys and values of one latent attention block; else 0. */
export function upProjectionWeights({ heads, latent: mla }) {
  if (!mla) return 0;
  const query = mla.query_rank * (mla.nope_head_dim + mla.rope_head_dim);
  return heads * (query + mla.kv_rank * (mla.nope_head_dim + mla.value_head_dim));
}

export function attentionBiases({ bias, heads, kv_heads, head_dim, hidden }) {
  return bias ? (heads + 2 * kv_heads) * head_dim + hidden : 0;
}

/** Weights of one feed-forward block, and its biases. */
export const ffnWeights = (shape, width) => FFN_MATRICES[shape.ffn] * shape.hidden * width;
const ffnBiases = (shape, width) =>
  shape.bias ? (FFN_MATRICES[shape.ffn] - 1) * width + shape.hidden : 0;

/** Parameters of the normalisations of one layer, and of the one after the last layer. */
export function layerNorms(shape) {
  const { hidden, heads, kv_heads, head_dim, latent } = shape;
  let found = shape.norms_per_layer * hidden * NORM_VECTORS[shape.norm];
  if (shape.qk_norm === "per-head") found += 2 * head_dim;
  else if (shape.qk_norm === "full-width") found += (heads + kv_heads) * head_dim;
  return latent ? found + latent.query_rank + latent.kv_rank : found;
}

export const finalNorm = (shape) => (shape.final_norm ? NORM_VECTORS[shape.norm] * shape.hidden : 0);

/** All parameters of a model, those that one token meets, and all but the lookup tables' share. */
export function parameterCounts(shape) {
  const { layers, hidden, vocab, experts } = shape;
  const block = (width) => ffnWeights(shape, width) + ffnBiases(shape, width);
  const one = experts ? block(experts.ffn_hidden) : 0;
  const router = experts ? hidden * experts.count + (shape.bias ? experts.count : 0) : 0;
  const perLayer = experts ? router + (experts.shared + experts.top_k) * one : 0;
  const table = vocab * hidden;
  const mixers = mixerLayers(shape, 0, layers);
  const active = table + (shape.learned_positions ? shape.sequence * hidden : 0)
    + (layers - mixers) * (attentionWeights(shape) + attentionBiases(shape)) + mixers * mixerParameters(shape)
    + shape.dense_layers * block(shape.ffn_hidden) + shape.expert_layers * perLayer
    + layers * layerNorms(shape) + finalNorm(shape)
    + (shape.tied_embeddings ? 0 : table) + shape.extra;
  const unvisited = experts ? shape.expert_layers * (experts.count - experts.top_k) * one : 0;
  return { total: active + unvisited, active };
}

/** Parameters of all but routed experts, and theirs, with modules that predict more tokens. */
export function parametersApart(shape, modules) {
  const { experts, hidden } = shape;
  const block = (width) => ffnWeights(shape, width) + ffnBiases(shape, width);
  const one = experts ? experts.count * block(experts.ffn_hidden) : 0;
  const routed = shape.expert_layers * one;
  const beside = experts
    ? hidden * experts.count + (shape.bias ? experts.count : 0) + experts.shared * block(experts.ffn_hidden)
    : block(shape.ffn_hidden);
  const layer = attentionWeights(shape) + attentionBiases(shape) + layerNorms(shape) + beside;
  const more = modules * (layer + 2 * hidden ** 2 + 3 * NORM_VECTORS[shape.norm] * hidden);
  return [parameterCounts(shape).total - routed + more, routed + modules * one];
}

/** Weights that one token is multiplied with: no lookup table, norm or bias; with LM head. */
export function matmulParameters(shape) {
  const { experts, hidden } = shape;
  let ffn = shape.dense_layers * ffnWeights(shape, shape.ffn_hidden);
  if (experts) {
    const visited = (experts.shared + experts.top_k) * ffnWeights(shape, experts.ffn_hidden);
    ffn += shape.expert_layers * (visited + hidden * experts.count);
  }
  const mixers = mixerLayers(shape, 0, shape.layers);
  return (shape.layers - mixers) * attentionWeights(shape) + mixers * mixerWeights(shape) + ffn + shape.vocab * hidden;
}

/** How many of so many layers, from number `first` on, see a window only. */
export function windowedLayers({ window, full_every: every }, first, layers) {
  if (!window || !every) return window ? layers : 0;
  return layers - Math.floor((first + layers) / every) + Math.floor(first / every);
}

/** Keys that a token meets in a windowed layer, the masked half counted as in a full square. */
export function windowedKeys(sequence, window) {
  const seen = Math.min(window, sequence);
  return (seen * (2 * sequence - seen)) / sequence;
}

function keysMet(shape, sequence) {
  const windowed = windowedLayers(shape, 0, shape.layers);
  const mixers = mixerLayers(shape, 0, shape.layers);
  return (shape.layers - windowed - mixers) * sequence + windowed * windowedKeys(sequence, shape.window);
}

const core = (shape, sequence) => keysMet(shape, sequence) * shape.attention_width;
const attention = (shape, sequence) => Math.floor(12 * shape.attention_width * keysMet(shape, sequence));
const mixed = (shape) => mixerLayers(shape, 0, shape.layers) * mixerFlops(shape);
const products6 = (shape) => 6 * matmulParameters(shape) + Math.floor(3 * mixed(shape));
const whole6 = (shape, sequence) => products6(shape) + attention(shape, sequence);

function hfuFull(shape, sequence) {
  const head = shape.vocab * shape.hidden;
  return 8 * (matmulParameters(shape) - head) + 6 * head + 16 * core(shape, sequence) + 4 * mixed(shape);
}

function megatron(shape, sequence) {
  const { layers, hidden } = shape;
  if (shape.experts || shape.latent || shape.state_space || shape.kv_heads !== shape.heads) return null;
  if (FFN_MATRICES[shape.ffn] !== 2 || shape.ffn_hidden !== 4 * hidden) return null;
  const share = sequence / (6 * hidden) + shape.vocab / (16 * layers * hidden);
  return 96 * layers * (hidden * hidden) * (1 + share);
}

/** FLOPs to train on one token of a shape by convention, or null where that does not cover it. */
export const CONVENTIONS = new Map([
  ["6nd", (shape) => 6 * parameterCounts(shape).active],
  ["6nd+attention", whole6],
  ["causal", (shape, sequence) => products6(shape) + Math.floor(attention(shape, sequence) / 2)],
  ["hfu-full", hfuFull],
  ["hfu-selective", (shape, sequence) => whole6(shape, sequence) + 4 * core(shape, sequence)],
  ["hfu-selective-korthikanti", (shape, sequence) => whole6(shape, sequence) + 12 * core(shape, sequence)],
  ["megatron", megatron],
]);
