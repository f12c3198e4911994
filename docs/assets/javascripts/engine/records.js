// Records of the printed models from plain objects, and plain objects from what they answer.

import { ExpertShape, LatentAttention, ModelShape, StateSpace } from "../models/shape/model_shape.js";

const PARTS = { experts: ExpertShape, latent: LatentAttention, state_space: StateSpace };

/** A record of the fields in `given`; what is left out has its default. */
export const record = (cls, given) => new cls(...cls.prototype.$fields.map((name) => given[name]));

/** A model's shape from what differs from the usual. Throws InputError. */
export function shapeOf(given) {
  const parts = Object.entries(PARTS).map(([name, cls]) => [name, given[name] ? record(cls, given[name]) : null]);
  const { heads, kv_heads = heads, head_dim = given.hidden / heads } = given;
  return record(ModelShape, { ...given, kv_heads, head_dim, ...Object.fromEntries(parts) });
}

/** A dictionary of Python's, and those in it, as an object. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, one]) => [name, plain(one)]));
  return Array.isArray(value) ? value.map(plain) : value;
}
