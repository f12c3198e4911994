// What a step carries out, and what a ring of keys keeps: counted when somebody looks. Pure.

import { sum } from "../engine/orders.js";
import { kv_ring_buffer_bytes } from "../step-formulas.js";

const ACTIONS = ["forward", "backward", "backward for inputs", "backward for weights"];

/** What all pipeline ranks of a replica carry out in a step: { parts: [[name, count], …], total }. */
export function operationsOf({ order: { orders } }) {
  const counts = [0, 0, 0, 0];
  for (const actions of orders) for (const code of actions) counts[code & 3]++;
  const parts = ACTIONS.map((name, kind) => [name, counts[kind]]).filter(([, count]) => count);
  return { parts, total: sum(counts) };
}

/** What the formula of a ring's two buffers takes for a configuration. */
export const ringArguments = ({ shape, microbatch_size, sequence, parallel: { cp }, kv_heads_per_rank }) => ({
  microbatch_size,
  sequence_length: sequence,
  cp,
  kv_width: kv_heads_per_rank * shape.head_dim,
  bytes_per_element: 2,
});

/** Bytes of two buffers of keys and values of one layer. */
export const ringBytes = (setup) => kv_ring_buffer_bytes(ringArguments(setup));
