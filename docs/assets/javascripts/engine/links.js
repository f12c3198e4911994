// Which link a call of a step runs on, and how long one call takes under α–β; mirrors
// figgen.models.step.step_links.

import { meshOf } from "./layout.js";
import { groupArray } from "./mesh.js";
import { ALL_TO_ALL, PASSES, SEND } from "./traffic.js";

const [SCALE_UP, NETWORK] = ["scale-up", "network"];
export { SCALE_UP, NETWORK };

const known = new WeakMap();

/** The fewest ranks that any group of a `groupArray` has on a node that it touches. */
export function fewestOnANode({ count, size, ranks }, gpus_per_node) {
  let fewest = size;
  for (let start = 0; start < count * size; start += size) {
    let members = 0;
    for (let at = start; at < start + size; at++) {
      members++;
      const node = Math.floor(ranks[at] / gpus_per_node);
      const last = at + 1 === start + size || node !== Math.floor(ranks[at + 1] / gpus_per_node);
      if (!last) continue;
      if (members < fewest) fewest = members;
      members = 0;
    }
  }
  return fewest;
}

/** The level of a communicator's link and the fewest ranks that a group has on a node it touches. */
export function groupLink(parallel, axis) {
  if (!known.has(parallel)) known.set(parallel, new Map());
  const links = known.get(parallel);
  if (!links.has(axis)) links.set(axis, axis === "embedding" ? ends(parallel) : found(parallel, axis));
  return links.get(axis);
}

// The two ends of each pipeline, which hold a tied table.
function ends(parallel) {
  const { count, size, ranks } = groupArray(parallel.dense, "pp");
  const node = (at) => Math.floor(ranks[at] / parallel.gpus_per_node);
  for (let group = 0; group < count; group++) {
    if (node(group * size) !== node(group * size + size - 1)) return { level: NETWORK, near: 1 };
  }
  return { level: SCALE_UP, near: 2 };
}

function found(parallel, axis) {
  const rows = groupArray(meshOf(parallel, axis), axis);
  const near = fewestOnANode(rows, parallel.gpus_per_node);
  return { level: near < rows.size ? NETWORK : SCALE_UP, near };
}

/** α–β time of one call, s: for its bytes, for the latencies of its steps, and both. */
export function callTime(traffic, link, cluster) {
  const [bytes_s, latency_s] = parts(traffic, link, cluster);
  return { bytes_s, latency_s, total_s: bytes_s + latency_s };
}

function parts({ collective, sent_bytes, buffer_bytes, size }, { level, near }, cluster) {
  const fast = cluster.scale_up_bandwidth_bytes_per_s;
  const slow = cluster.network_bandwidth_bytes_per_s;
  const crosses = level === NETWORK;
  const alpha = crosses ? cluster.network_latency_s : cluster.scale_up_latency_s;
  if (collective === SEND) return [sent_bytes / (crosses ? slow : fast), alpha];
  const steps = size - 1;
  if (collective === ALL_TO_ALL) {
    if (!crosses) return [sent_bytes / fast, steps * alpha];
    const perPeer = buffer_bytes / size;
    const [outside, inside] = [(size - near) * perPeer, (near - 1) * perPeer];
    return [Math.max(outside / slow, inside / fast), steps * alpha];
  }
  const bandwidth = crosses ? Math.min(fast, near * slow) : fast;
  const across = Math.ceil(size / near) - 1;
  return [sent_bytes / bandwidth, PASSES[collective] * (across * alpha + (steps - across) * cluster.scale_up_latency_s)];
}

/** Bytes of one call that go out of the GPU's own link of each level: [scale-up, network]. */
export function portBytes({ collective, size, buffer_bytes, call_bytes }, { level, near }) {
  if (level === SCALE_UP) return [call_bytes, 0];
  if (collective === SEND) return [0, call_bytes];
  if (collective === ALL_TO_ALL) {
    const perPeer = buffer_bytes / size;
    return [(near - 1) * perPeer, (size - near) * perPeer];
  }
  const outside = call_bytes / near;
  return [call_bytes - outside, outside];
}
