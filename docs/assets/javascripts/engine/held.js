// Parameters that one GPU holds for a virtual stage; mirrors figgen.models.memory.rank_parameters.

import { keptOf, keptSum, matrices } from "./lora.js";
import { sum } from "./orders.js";
import { NORM_VECTORS, attentionBiases, finalNorm, layerNorms, mixerParameters } from "./transformer.js";

/** Parameters of the embedding, or of the head, on a tensor-parallel rank. */
export const tableHeld = ({ shape, parallel }) =>
  Math.ceil(shape.vocab / parallel.tp) * shape.hidden;

/** Parameters of one layer on one GPU, routed experts and everything else apart; what is trained. */
export function layerHeld(setup, experts) {
  const { shape } = setup;
  const found = matrices(setup, experts);
  let [dense, routed] = [layerNorms(shape), 0];
  for (const { part, weights, copies, outputs } of found) {
    const own = shape.bias && !(shape.latent && part === "attention") ? copies * outputs : 0;
    if (part === "routed") routed += weights + own;
    else dense += weights + own;
  }
  if (shape.latent) dense += attentionBiases(shape);
  // Shared experts lie together, but each has a bias.
  if (shape.bias && experts && shape.experts?.shared) dense += (shape.experts.shared - 1) * shape.hidden;
  return { dense, routed, kept: keptOf(setup, found, [dense, routed]) };
}

/** Parameters of a module that predicts one token more besides its layer: projection, 3 norms. */
export const projectionHeld = ({ shape: { hidden, norm }, parallel }) =>
  (2 * hidden * hidden) / parallel.tp + 3 * NORM_VECTORS[norm] * hidden;

/** What a layer with a mixer holds more than one with attention, often less. */
export const mixerMore = (setup) =>
  (setup.shape.state_space ? mixerParameters(setup.shape) / setup.parallel.tp - attentionHeld(setup) : 0);

const attentionHeld = (setup) =>
  sum(matrices(setup, false).map(({ part, weights, outputs }) => (part === "attention" ? weights + setup.shape.bias * outputs : 0)));

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
    const layers = share.dense_layers * plain.dense + share.expert_layers * mixed.dense;
    let dense = layers + share.mixer_layers * mixerMore(setup);
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
    dense += tables;
    const kept = keptSum(setup, [[share.dense_layers, plain.kept], [share.expert_layers, mixed.kept]], dense - layers);
    return { dense, tables, kept, routed: share.expert_layers * mixed.routed };
  });
}

/** What any GPU of a pipeline rank holds, its virtual stages together. */
export function rankHeld(setup, held, rank) {
  const mine = setup.stagesOf[rank].map((stage) => held[stage]);
  const all = (name) => sum(mine.map((h) => h[name]));
  const kept = keptSum(setup, mine.map((h) => [1, h.kept]));
  return { dense: all("dense"), tables: all("tables"), routed: all("routed"), kept };
}
