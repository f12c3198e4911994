// Memory of a training step on every pipeline rank; mirrors figgen.models.memory.memory and
// communication_buffers.

import { kv_ring_buffer_bytes } from "../step-formulas.js";
import {
  ACTIVATION_BYTES, layerGradientBytes, layerInputBytes, lossBytes, peakActivationBytes,
  recomputedBytes,
} from "./activations.js";
import { layerHeld, mixerMore, rankHeld, stagesHeld, tableHeld } from "./held.js";
import { peakInFlight, sum } from "./orders.js";
import { mixerLayers } from "./transformer.js";


/** Parts of memory, in order; "working" is what the loss or one layer's backward needs. */
const PARTS = [
  "weights", "gradients", "optimizer", "activations", "working", "communication", "reserve",
];
const LASTING = ["weights", "FP8 weights", "accumulated gradients", "buckets of gradients", "optimizer state"];

/** Every pipeline rank with its lines and parts in bytes, the fullest, what the capacity leaves. */
export function memoryOf(setup) {
  const { order, stagesOf, shares, capacity_bytes, framework_memory } = setup;
  const held = stagesHeld(setup);
  const activations = peakActivationBytes(setup);
  const in_flight = peakInFlight(order);
  const ranks = stagesOf.map((stages, rank) => {
    const mine = stages.map((stage) => shares[stage]);
    const total = rankHeld(setup, held, rank);
    const lines = rankLines(setup, mine, total, activations[rank]);
    const bytes = Object.fromEntries(PARTS.map((name) =>
      [name, sum(lines.filter(([part]) => part === name).map(([, , size]) => size))]));
    return {
      pipeline_rank: rank,
      layers: sum(mine.map((share) => share.layers)),
      parameters: total.dense + total.routed,
      in_flight: in_flight[rank],
      bytes,
      lines,
      allocator_bytes: sum(lines.filter(([, name]) => name !== "contexts").map(([, , size]) => size)),
      total_bytes: sum(Object.values(bytes)),
    };
  });
  const fullest = ranks.reduce((most, rank) => (rank.total_bytes > most.total_bytes ? rank : most));
  const printed_bytes = {
    first: ranks[0].allocator_bytes,
    fullest: Math.max(...ranks.map((rank) => rank.allocator_bytes)),
    device: fullest.total_bytes,
  }[framework_memory.prints];
  const free_bytes = capacity_bytes === null ? null : capacity_bytes - fullest.total_bytes;
  const fits = free_bytes === null ? null : free_bytes >= 0;
  const fullest_rank = fullest.pipeline_rank;
  return { ranks, fullest_rank, printed_bytes, capacity_bytes, free_bytes, fits };
}

// [part, name, bytes] of all that is not empty, in the order of figgen.models.memory.memory_lines.
function rankLines(setup, mine, total, activationBytes) {
  const { framework_memory: framework } = setup;
  const trained = sum(total.kept.trained);
  const { weights, gradients, optimizer } = stateBytes(setup, total);
  const replicated = setup.zero_stage === 0 && setup.dense_shards > 1;
  const lines = [
    ["weights", "weights", weights],
    ["weights", "FP8 weights", (trained - total.tables) * castWeightBytes(setup)],
    ["gradients", "accumulated gradients", gradients],
    ["gradients", "buckets of gradients", replicated ? trained * framework.bucket_bytes : 0],
    ["gradients", "fresh gradients", trained * framework.fresh_gradient_bytes],
    ["optimizer", "optimizer state", optimizer],
    ["activations", "activations in flight", activationBytes],
    ...working(setup, mine),
    ...buffersOf(setup, mine, total.kept).map(([name, size]) => ["communication", name, size]),
  ].filter(([, , size]) => size);
  const moving = sum(lines.filter(([, name]) => !LASTING.includes(name)).map(([, , size]) => size));
  const reserve = [
    ["reserve", "allocator", framework.allocator_share * moving],
    ["reserve", "contexts", setup.reserve_bytes],
  ];
  return [...lines, ...reserve.filter(([, , size]) => size)];
}

/** Bytes of the 8-bit copies of a weight of a layer that stay through a step. */
export function castWeightBytes({ framework_memory, format, lora_rank, zero_stage }) {
  return framework_memory.caches_casts && lora_rank === null && zero_stage < 3 ? format.cast : 0;
}

// The loss or the backward of one layer, whichever takes more.
function working(setup, mine) {
  const layers = mine.map((share) => [recomputedBytes(setup, share), layerGradientBytes(setup, share)]);
  const [anew, gradients] = layers.reduce((most, one) => (sum(one) > sum(most) ? one : most));
  const loss = mine.some((share) => share.head) ? lossBytes(setup) : 0;
  if (loss > anew + gradients) return [["working", "copies of logits", loss]];
  return [["working", "recomputed layers", anew], ["working", "gradients of a layer", gradients]];
}

// Stage 1 divides the optimizer state, 2 the gradients as well, 3 the weights too.
function stateBytes({ recipe, zero_stage, dense_shards, parallel, lora_rank }, { tables, kept }) {
  const part = (perParameter, firstStage, [dense, routed] = [0, 0]) => {
    const divided = zero_stage >= firstStage;
    return (kept.trained[0] * perParameter + dense) / (divided ? dense_shards : 1)
      + (kept.trained[1] * perParameter + routed) / (divided ? parallel.edp : 1);
  };
  const adams = lora_rank === null ? tables * recipe.table_bytes : 0;
  return {
    weights: part(recipe.weight_bytes, 3, kept.frozen),
    gradients: part(recipe.gradient_bytes, 2),
    optimizer: part(recipe.optimizer_bytes, 1) + adams / (zero_stage >= 1 ? dense_shards : 1),
  };
}

/** Mean width of keys and values of one tensor-parallel rank: elements per token and tensor. */
export function keyValueWidth({ shape, parallel, kv_heads_per_rank }) {
  const mla = shape.latent;
  if (!mla) return kv_heads_per_rank * shape.head_dim;
  const width = mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim;
  return ((shape.heads / parallel.tp) * width) / 2;
}

/** Messages under way and gathered shards on a GPU that holds these shares and `kept` of them, as [name, bytes]. */
export function buffersOf(setup, mine, kept) {
  const { shape, parallel: { pp, tp, cp, ep, etp }, tokens, split_tokens } = setup;
  const { hidden, experts } = shape;
  const found = [];
  if (pp > 1) found.push(["pipeline messages", 2 * layerInputBytes(setup)]);
  if (tp > 1 && setup.sequence_parallel) {
    // Two of each: a tensor of a collective is given back only when its stream is done.
    found.push(["gathered layer inputs", 2 * tokens * hidden * ACTIVATION_BYTES]);
    found.push(["gathered layer gradients", 2 * tokens * hidden * ACTIVATION_BYTES]);
  }
  if (cp > 1 && mixerLayers(shape, 0, shape.layers) < shape.layers) found.push(["keys and values of other ranks", keyValueBytes(setup)]);
  if (experts && ep * etp > 1) {
    const each = setup.format.dispatch + ACTIVATION_BYTES;
    found.push(["routed tokens", split_tokens * experts.top_k * etp * hidden * each]);
  }
  return [...found, ...shardedBytes(setup, mine, kept)];
}

// A ring needs one block, or two in turn; an all-gather holds the whole sequence.
export function keyValueBytes(setup) {
  const { microbatch_size, sequence, parallel: { cp } } = setup;
  const kv_width = keyValueWidth(setup);
  if (setup.context_exchange === "all-gather") {
    return 2 * microbatch_size * sequence * kv_width * ACTIVATION_BYTES;
  }
  const both = kv_ring_buffer_bytes({
    microbatch_size, sequence_length: sequence, cp, kv_width, bytes_per_element: ACTIVATION_BYTES,
  });
  return setup.double_buffering ? both : both / 2;
}

// Whole weights and gradients where ZeRO keeps only shards: of a layer, or of a whole stage.
function shardedBytes(setup, mine, kept) {
  const { recipe: { weight_bytes, gradient_bytes }, zero_stage } = setup;
  if (zero_stage < 2 || setup.dense_shards === 1) return [];
  const whole = ({ trained, frozen }, more = 0) => {
    const count = sum(trained) + more;
    return [count * weight_bytes + sum(frozen), count * gradient_bytes];
  };
  const units = unitsOf(setup, mine).map(([one, more]) => whole(one, more));
  const largest = (at) => Math.max(0, ...units.map((one) => one[at]));
  const one = [(setup.double_buffering ? 2 : 1) * largest(0), largest(1)];
  const [weights, gradients] = setup.framework_memory.whole_in_pipeline && setup.parallel.pp > 1 ? whole(kept) : one;
  const scattered = ["gradients before they are scattered", gradients];
  return zero_stage < 3 ? [scattered] : [scattered, ["gathered weights", weights]];
}

// What is gathered at once, layers and tables, as [kept, more parameters].
function unitsOf(setup, mine) {
  const plain = (count) => ({ trained: [count], frozen: [0] });
  const size = tableHeld(setup);
  const table = setup.lora_rank === null ? plain(size) : { trained: [0], frozen: [size * ACTIVATION_BYTES] };
  const wider = Math.max(0, mixerMore(setup));
  return mine.flatMap(({ embedding, head, dense_layers, expert_layers }) => [
    [dense_layers, layerHeld(setup, false).kept, wider], [expert_layers, layerHeld(setup, true).kept, wider],
    [embedding || head, table, 0],
  ].filter(([there]) => there).map(([, one, more]) => [one, more]));
}
