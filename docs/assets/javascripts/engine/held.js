// Parameters that one GPU holds for a virtual stage; mirrors figgen.models.rank_parameters.

import { sum } from "./orders.js";
import {
  FFN_MATRICES, NORM_VECTORS, attentionBiases, finalNorm, layerNorms, mixerParameters,
} from "./transformer.js";

/** Parameters of the embedding, or of the head, on a tensor-parallel rank. */
export const tableHeld = ({ shape, parallel }) =>
  Math.ceil(shape.vocab / parallel.tp) * shape.hidden;

/** Parameters of one layer on one GPU, routed experts and everything else apart. */
export function layerHeld(setup, experts) {
  const { shape, parallel: { tp, ep, etp } } = setup;
  let dense = attentionHeld(setup) + layerNorms(shape);
  const mixture = shape.experts;
  if (!mixture || !experts) return { dense: dense + ffnHeld(shape, shape.ffn_hidden, tp), routed: 0 };
  dense += shape.hidden * mixture.count + (shape.bias ? mixture.count : 0);
  dense += mixture.shared * ffnHeld(shape, mixture.ffn_hidden, tp);
  const routed = Math.floor(mixture.count / ep) * ffnHeld(shape, mixture.ffn_hidden, etp);
  return { dense, routed };
}

/** Parameters of a module that predicts one token more besides its layer: projection, 3 norms. */
export const projectionHeld = ({ shape: { hidden, norm }, parallel }) =>
  (2 * hidden * hidden) / parallel.tp + 3 * NORM_VECTORS[norm] * hidden;

/** What a layer with a mixer holds more than one with attention, often less. */
export const mixerMore = (setup) =>
  (setup.shape.state_space ? mixerParameters(setup.shape) / setup.parallel.tp - attentionHeld(setup) : 0);

const besideEmbedding = ({ shares, stagesOf, placement }, stage) =>
  stagesOf[placement.rank_of_stage[stage]].some((one) => shares[one].embedding);

/** Whether such modules need a copy of the embedding on this stage. */
export const copiesEmbedding = (setup, stage) =>
  +(setup.shares[stage].mtp_layers > 0 && !setup.shape.tied_embeddings && !besideEmbedding(setup, stage));

/** What any GPU of each virtual stage holds, { dense, routed }, and the tables among it. */
export function stagesHeld(setup) {
  const { shape, shares } = setup;
  const [plain, mixed] = [layerHeld(setup, false), layerHeld(setup, true)];
  return shares.map((share, stage) => {
    let dense = share.dense_layers * plain.dense + share.expert_layers * mixed.dense + share.mixer_layers * mixerMore(setup);
    let tables = (share.embedding + copiesEmbedding(setup, stage)) * tableHeld(setup);
    if (share.embedding) {
      dense += shape.extra;
      if (shape.learned_positions) dense += shape.sequence * shape.hidden;
    }
    if (share.head) {
      // A tied head is one more copy of the table, unless its rank holds the embedding too.
      dense += finalNorm(shape) + share.mtp_layers * projectionHeld(setup);
      if (!shape.tied_embeddings || !besideEmbedding(setup, stage)) tables += tableHeld(setup);
    }
    return { dense: dense + tables, tables, routed: share.expert_layers * mixed.routed };
  });
}

/** What any GPU of a pipeline rank holds, its virtual stages together. */
export function rankHeld(setup, held, rank) {
  const mine = setup.stagesOf[rank].map((stage) => held[stage]);
  const all = (name) => sum(mine.map((h) => h[name]));
  return { dense: all("dense"), tables: all("tables"), routed: all("routed") };
}

function attentionHeld({ shape, parallel, kv_heads_per_rank }) {
  const { hidden, latent: mla } = shape;
  const heads = Math.floor(shape.heads / parallel.tp);
  if (!mla) {
    const [query, keyValue] = [heads * shape.head_dim, kv_heads_per_rank * shape.head_dim];
    const biases = shape.bias ? query + 2 * keyValue + hidden : 0;
    return 2 * hidden * (query + keyValue) + biases;
  }
  const down = hidden * (mla.query_rank + mla.kv_rank + mla.rope_head_dim);
  const upQuery = mla.query_rank * heads * (mla.nope_head_dim + mla.rope_head_dim);
  const upKeyValue = mla.kv_rank * heads * (mla.nope_head_dim + mla.value_head_dim);
  return down + upQuery + upKeyValue + heads * mla.value_head_dim * hidden + attentionBiases(shape);
}

// One feed-forward block divided over `ways` ranks; the last bias stays whole.
function ffnHeld(shape, ffn_hidden, ways) {
  const [matrices, width] = [FFN_MATRICES[shape.ffn], Math.floor(ffn_hidden / ways)];
  return matrices * shape.hidden * width + (shape.bias ? (matrices - 1) * width + shape.hidden : 0);
}
