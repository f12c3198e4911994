// A model's shape as a record of the printed models.

import { record } from "./records.js";
import { ExpertShape, LatentAttention, ModelShape, StateSpace } from "../models/shape/model_shape.js";

const PARTS = { experts: ExpertShape, latent: LatentAttention, state_space: StateSpace };

/** A model's shape from what differs from the usual. Throws InputError. */
export function shapeOf(given) {
  const parts = Object.entries(PARTS).map(([name, cls]) => [name, given[name] ? record(cls, given[name]) : null]);
  const { heads, kv_heads = heads, head_dim = given.hidden / heads } = given;
  return record(ModelShape, { ...given, kv_heads, head_dim, ...Object.fromEntries(parts) });
}
