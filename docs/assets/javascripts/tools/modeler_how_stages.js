// The stages of a pipeline rank, for worked lines. Pure.

import { virtual_stage_shares } from "../models/setup/stage_layers.js";

/** Shares of the layers that the virtual stages of a pipeline rank have. */
export function sharesOf(setup, rank) {
  const shares = virtual_stage_shares(setup);
  return setup.placement.stages_of_rank(rank).map((stage) => shares[stage]);
}

/** Microbatches that pass every stage in a step. */
export const passingOf = (setup) => setup.microbatches_of_stage;
