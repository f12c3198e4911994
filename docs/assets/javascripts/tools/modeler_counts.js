// The actions of a step, and the buffers of a ring of keys, counted on request. Pure.

import { sum } from "../engine/runtime.js";
import { kv_ring_buffer_bytes } from "../step-formulas.js";

/** What an action of each kind does, in words. */
export const ACTIONS = { F: "forward", B: "backward", I: "backward for inputs", W: "backward for weights" };

/** The actions of all pipeline ranks of a replica in a step: { parts: [[name, count], …], total }. */
export function operationsOf({ order: { orders } }) {
  const counts = Object.fromEntries(Object.keys(ACTIONS).map((kind) => [kind, 0]));
  for (const actions of orders) for (const { kind } of actions) counts[kind]++;
  const parts = Object.entries(ACTIONS).map(([kind, name]) => [name, counts[kind]]).filter(([, count]) => count);
  return { parts, total: sum(Object.values(counts)) };
}

/** The inputs of the formula of a ring's two buffers, for a configuration. */
export const ringArguments = ({ shape, microbatch_size, sequence, parallel: { cp }, kv_heads_per_rank }) => ({
  microbatch_size,
  sequence_length: sequence,
  cp,
  kv_width: kv_heads_per_rank * shape.head_dim,
  bytes_per_element: 2,
});

/** Bytes of two buffers of keys and values of one layer. */
export const ringBytes = (setup) => kv_ring_buffer_bytes(ringArguments(setup));
