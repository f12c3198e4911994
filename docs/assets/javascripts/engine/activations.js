// Activations that a GPU keeps for backward: which tensors, how many bytes, how many at once;
// mirrors figgen.models.memory.activations and figgen.models.memory.layer_tensors.

import { adaptedParts } from "./lora.js";
import { F, I, sum } from "./orders.js";
import { keptInputs, wholeLayers } from "./recomputation.js";
import { FFN_MATRICES, mixerLayers } from "./transformer.js";

export const ACTIVATION_BYTES = 2;
const SECOND = "every_second_product";
// Of what only gradients of frozen weights would read, which autograd does not keep.
const UNREAD = "unread";
// Matrices of a feed-forward block with a gate.
const GATED = 3;


/** Bytes of the input of a layer, all that full recomputation keeps of it. */
export const layerInputBytes = ({ split_tokens, shape }) =>
  split_tokens * shape.hidden * ACTIVATION_BYTES;

/** Most bytes that backward makes anew at once, on top of what the virtual stage keeps. */
export function recomputedBytes(setup, share) {
  const { recomputed: again } = setup;
  if (again.modules.size) {
    const kinds = [false, true].filter((experts) => layersOf(share, experts));
    return Math.max(0, ...kinds.map((experts) => most(setup, experts, ([, anew]) => anew)));
  }
  const whole = wholeLayers(again, share.layers);
  const each = again.method === "uniform" ? again.number : 1;
  let found = 0;
  for (let first = 0; first < whole; first += each) {
    const layers = Math.min(each, whole - first);
    const dense = Math.min(layers, Math.max(0, share.dense_layers - first));
    let made = -layerInputBytes(setup);
    if (dense) made += dense * most(setup, false, sum);
    if (layers > dense) made += (layers - dense) * most(setup, true, sum);
    found = Math.max(found, made);
  }
  return found;
}

// Of a layer with attention or one with a mixer, whichever has more.
const most = (setup, experts, of) =>
  Math.max(...[false, ...(setup.shape.state_space ? [true] : [])].map((mixer) => of(keptAndMadeAnew(setup, experts, mixer))));

/** Bytes that a layer keeps more with a mixer than with attention, often less. */
export const mixerBytes = (setup) =>
  (setup.shape.state_space ? keptAndMadeAnew(setup, false, true)[0] - keptAndMadeAnew(setup, false)[0] : 0);

const layersOf = (share, experts) => (experts ? share.expert_layers : share.dense_layers);

// Bytes of a layer that recomputing modules leaves, and those that backward makes anew; what
// experts return is not made anew where gates multiply before it.
function keptAndMadeAnew(setup, experts, mixer = false) {
  const { modules } = setup.recomputed;
  let [kept, anew] = [0, 0];
  for (const [bytes, ...by] of layerTensors(setup, experts, mixer)) {
    if (by.includes(UNREAD)) continue;
    if (!by.some((name) => modules.has(name))) kept += bytes;
    else if (!modules.has("moe_gate") || !by.includes("moe_gate")) anew += bytes;
  }
  return [kept, anew];
}

// Every tensor of one layer and microbatch as [bytes, modules that drop it …].
function layerTensors(setup, experts, mixer = false) {
  const { shape, tokens, split_tokens, dropout, format: { linear }, parallel: { tp } } = setup;
  const found = [];
  const put = (count) => (width, size, ...modules) => found.push([count * width * size, ...modules]);
  // Tensors that only sequence parallelism divides, and those that TP has already divided.
  const [whole, divided] = [put(split_tokens), put(tokens)];
  // Inputs of column-parallel products, gathered where the framework keeps them so.
  const read = setup.framework_memory.keeps_gathered ? divided : whole;
  const mixers = mixer && shape.state_space;
  if (mixers) {
    read(shape.hidden, linear, "layernorm", SECOND);
    divided(mixers.projected / tp + 2 * (mixers.inner / tp), 2);
    divided(mixers.inner / tp, linear);
  } else attention(setup, whole, divided, read);
  if (!mixers && !setup.flash_attention) {
    divided((shape.heads / tp) * setup.sequence, dropout ? 5 : 2, "core_attn");
  }
  const frozen = setup.lora_rank !== null && !setup.frozen_format.keeps_inputs;
  const own = frozen && setup.lora_matrices !== "all-linear" ? [UNREAD] : [];
  if (experts && shape.experts) mixture(setup, whole, divided, own, frozen && !shape.experts.shared ? [UNREAD] : own);
  else {
    read(shape.hidden, linear, "layernorm", SECOND, ...own);
    const width = Math.floor(shape.ffn_hidden / tp);
    divided(width, 2, "mlp");
    if (FFN_MATRICES[shape.ffn] === GATED) {
      divided(width, 2, "mlp", SECOND);
      if (setup.framework_memory.keeps_gate) divided(width, 2, "mlp", SECOND);
    }
    divided(width, linear, "mlp", SECOND, ...own);
  }
  for (const part of adaptedParts(setup, experts)) {
    if (part === "routed") whole(shape.experts.top_k * setup.parallel.etp * setup.lora_rank, 2, "moe");
    else divided(setup.lora_rank, 2, ...(part === "dense" ? ["mlp"] : part === "shared" ? ["moe", "shared_experts"] : []));
  }
  whole(shape.norms_per_layer * shape.hidden, 2);
  if (dropout) whole(shape.hidden, 2);
  return found;
}

function attention(setup, whole, divided, read) {
  const { shape, format, kv_heads_per_rank, parallel: { tp } } = setup;
  const { hidden, latent: mla, head_dim: dim } = shape;
  const { linear } = format;
  const heads = shape.heads / tp;
  let [kvHeads, keyDim, valueDim, madeBy] = [kv_heads_per_rank, dim, dim, []];
  // In 8 bits each of two down-projections keeps its own copy.
  read(mla && linear < 2 ? 2 * hidden : hidden, linear, "layernorm", SECOND);
  if (mla) {
    const ranks = mla.query_rank + mla.kv_rank;
    whole(ranks + mla.rope_head_dim, 2);
    whole(ranks, linear, "latent_norm");
    [keyDim, valueDim] = [mla.nope_head_dim + mla.rope_head_dim, mla.value_head_dim];
    [kvHeads, madeBy] = [heads, ["mla_up_proj"]];
  }
  if (shape.qk_norm !== "none") divided((heads + kvHeads) * keyDim, 2);
  divided(heads * keyDim + kvHeads * valueDim, 2, ...madeBy);
  divided(kvHeads * keyDim, 2, ...(mla ? madeBy : [SECOND]));
  const unread = setup.lora_rank !== null && setup.lora_matrices === "query-value"
    && !setup.flash_attention && !setup.frozen_format.keeps_inputs;
  divided(heads * valueDim, format.attention, ...(unread ? [UNREAD] : []));
}

function mixture({ shape, format: { linear, gated }, framework_memory, parallel: { tp, etp } }, whole, divided, own, routers) {
  const { hidden, ffn, experts: { count, top_k, ffn_hidden, shared } } = shape;
  const before = FFN_MATRICES[ffn] - 1;
  const modules = ["moe", "shared_experts"];
  whole(hidden, 2, "layernorm", ...routers);
  whole(count, 4, "moe");
  whole(top_k * etp * hidden, linear, "moe", ...own);
  whole(before * top_k * ffn_hidden, gated, "moe");
  whole(top_k * ffn_hidden, linear, "moe", "moe_act", ...own);
  if (!framework_memory.gates_first) whole(top_k * etp * hidden, 2, "moe", "moe_gate");
  if (shared && linear < 2) whole(hidden, linear, "layernorm", ...modules);
  const width = Math.floor((shared * ffn_hidden) / tp);
  divided(before * width, gated, ...modules);
  divided(width, linear, ...modules, ...own);
}

/** What virtual stages keep of their layers, as [how many, bytes of each, of what]. */
export function keptLayers(setup, shares) {
  const { recomputed: again } = setup;
  const counts = [0, 0, 0, 0];
  for (const { layers, dense_layers, first_layer, mixer_layers, mtp_layers } of shares) {
    const whole = wholeLayers(again, layers);
    const dense = Math.max(0, dense_layers - whole);
    const mixers = mixer_layers && mixer_layers - mixerLayers(setup.shape, first_layer, Math.min(whole, layers - mtp_layers));
    [keptInputs(again, layers), dense, layers - whole - dense, mixers].forEach((count, kind) => {
      counts[kind] += count;
    });
  }
  const each = (kind) => (kind > 2 ? mixerBytes(setup) : kind ? keptAndMadeAnew(setup, kind === 2)[0] : layerInputBytes(setup));
  return ["inputs of layers", "layers", "layers with experts", "mixers for attention"].flatMap((name, kind) =>
    counts[kind] ? [[counts[kind], each(kind), name]] : []);
}

/** Bytes that a virtual stage keeps for one microbatch, its embedding or head included. */
export function stageBytes(setup, share) {
  const { shape, tokens, split_tokens } = setup;
  let found = sum(keptLayers(setup, [share]).map(([count, bytes]) => count * bytes));
  const trained = setup.lora_rank === null;
  if (share.embedding) found += (trained ? tokens * 8 : 0) + (setup.dropout ? split_tokens * shape.hidden : 0);
  const { keeps_gathered, keeps_outputs, kept_logit_bytes } = setup.framework_memory;
  if (share.head) {
    found += (shape.final_norm ? 1 : 0) * layerInputBytes(setup);
    const read = (keeps_gathered ? tokens : split_tokens) * shape.hidden;
    const ends = (trained ? read * ACTIVATION_BYTES : 0) + logits(setup) * kept_logit_bytes;
    // A module that predicts one token more: its tokens, their embedding, the projection's input.
    let more = tokens * 8 + layerInputBytes(setup);
    if (setup.recomputed.method !== "uniform") more += 2 * read * setup.format.linear + layerInputBytes(setup);
    found += ends + share.mtp_layers * (more + ends);
  } else if (keeps_outputs) found += layerInputBytes(setup);
  return found;
}

const logits = ({ tokens, shape, parallel }) => tokens * Math.ceil(shape.vocab / parallel.tp);

/** Bytes beside the logits while the loss of one microbatch is at work. */
export const lossBytes = (setup) => logits(setup) * setup.framework_memory.loss_bytes;

/** Most bytes of gradients at once while backward goes through one layer. */
export function layerGradientBytes(setup, share) {
  const { shape, parallel, dropout, flash_attention: flash } = setup;
  let found = 0;
  for (const experts of [false, true]) {
    if (!layersOf(share, experts)) continue;
    const tensors = layerTensors(setup, experts);
    const inBlock = ([, ...by]) => by.includes("mlp") || by.includes("moe");
    const block = sum(tensors.filter(inBlock).map(([bytes]) => bytes));
    const core = flash ? 0
      : setup.tokens * ((shape.heads / parallel.tp) * setup.sequence) * (dropout ? 5 : 2);
    const mixers = shape.state_space ? (setup.tokens * shape.state_space.projected * ACTIVATION_BYTES) / parallel.tp : 0;
    found = Math.max(found, block, core, mixers);
  }
  return found;
}

/** Most bytes of activations at any point of each rank's order. */
export function peakActivationBytes(setup) {
  const kept = setup.shares.map((share) => stageBytes(setup, share));
  const { microbatches } = setup;
  return setup.order.orders.map((order, rank) => {
    const stages = setup.stagesOf[rank];
    const counts = new Int32Array(setup.placement.stages);
    let peak = 0;
    for (const code of order) {
      const stage = Math.floor((code >> 2) / microbatches);
      const kind = code & 3;
      if (kind === F) {
        counts[stage]++;
        let now = 0;
        for (const one of stages) now += counts[one] * kept[one];
        if (now > peak) peak = now;
      } else if (kind !== I) counts[stage]--;
    }
    return peak;
  });
}
