// Memory of a training step on every pipeline rank; mirrors figgen.models.memory and
// communication_buffers.

import { kv_ring_buffer_bytes } from "../step-formulas.js";
import {
  ACTIVATION_BYTES, layerInputBytes, peakActivationBytes, recomputedBytes,
} from "./activations.js";
import { layerHeld, rankHeld, stagesHeld, tableHeld } from "./held.js";
import { peakInFlight } from "./orders.js";

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Every pipeline rank with its parts in bytes, the fullest one, and what the capacity leaves. */
export function memoryOf(setup) {
  const { order, stagesOf, shares, capacity_bytes } = setup;
  const held = stagesHeld(setup);
  const activations = peakActivationBytes(setup);
  const in_flight = peakInFlight(order);
  const ranks = stagesOf.map((stages, rank) => {
    const mine = stages.map((stage) => shares[stage]);
    const total = rankHeld(setup, held, rank);
    const bytes = {
      ...stateBytes(setup, total),
      activations: activations[rank],
      recomputed: Math.max(...mine.map((share) => recomputedBytes(setup, share))),
      communication: communicationBytes(setup, mine),
      reserve: setup.reserve_bytes,
    };
    return {
      pipeline_rank: rank,
      layers: sum(mine.map((share) => share.layers)),
      parameters: total.dense + total.routed,
      in_flight: in_flight[rank],
      bytes,
      total_bytes: sum(Object.values(bytes)),
    };
  });
  const fullest = ranks.reduce((most, rank) => (rank.total_bytes > most.total_bytes ? rank : most));
  const free_bytes = capacity_bytes === null ? null : capacity_bytes - fullest.total_bytes;
  const fits = free_bytes === null ? null : free_bytes >= 0;
  return { ranks, fullest_rank: fullest.pipeline_rank, capacity_bytes, free_bytes, fits };
}

// Stage 1 divides the optimizer state, 2 the gradients as well, 3 the weights too.
function stateBytes({ recipe, zero_stage, dense_shards, parallel }, { dense, routed }) {
  const part = (perParameter, firstStage) => {
    const divided = zero_stage >= firstStage;
    return (dense * perParameter) / (divided ? dense_shards : 1)
      + (routed * perParameter) / (divided ? parallel.edp : 1);
  };
  return {
    weights: part(recipe.weight_bytes, 3),
    gradients: part(recipe.gradient_bytes, 2),
    optimizer: part(recipe.optimizer_bytes, 1),
  };
}

/** Mean width of keys and values of one tensor-parallel rank: elements per token and tensor. */
export function keyValueWidth({ shape, parallel, kv_heads_per_rank }) {
  const mla = shape.latent;
  if (!mla) return kv_heads_per_rank * shape.head_dim;
  const width = mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim;
  return ((shape.heads / parallel.tp) * width) / 2;
}

// Messages under way and gathered shards on a GPU that holds these shares.
function communicationBytes(setup, mine) {
  const { shape, parallel: { pp, tp, cp, ep, etp }, tokens, split_tokens } = setup;
  const { hidden, experts } = shape;
  let found = 0;
  if (pp > 1) found += 2 * layerInputBytes(setup);
  if (tp > 1 && setup.sequence_parallel) found += tokens * hidden * ACTIVATION_BYTES;
  if (cp > 1) found += keyValueBytes(setup);
  if (experts && ep * etp > 1) {
    const each = setup.format.dispatch + ACTIVATION_BYTES;
    found += split_tokens * experts.top_k * etp * hidden * each;
  }
  return found + shardedBytes(setup, mine);
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

// Whole weights and gradients of the layer at work, where ZeRO keeps only shards.
export function shardedBytes(setup, mine) {
  if (setup.zero_stage < 2 || setup.dense_shards === 1) return 0;
  const units = mine.some((share) => share.embedding || share.head) ? [tableHeld(setup)] : [];
  const layer = (experts) => {
    const { dense, routed } = layerHeld(setup, experts);
    units.push(dense + routed);
  };
  if (mine.some((share) => share.dense_layers)) layer(false);
  if (mine.some((share) => share.expert_layers)) layer(true);
  const largest = Math.max(0, ...units);
  const gradients = largest * setup.recipe.gradient_bytes;
  if (setup.zero_stage < 3) return gradients;
  return gradients + (setup.double_buffering ? 2 : 1) * largest * setup.recipe.weight_bytes;
}
