// The groups of a mesh by arithmetic: a question about one rank or group costs only that one.

import { axis_names, group_offsets } from "../models/machine/mesh.js";

/**
 * Groups along one axis or several together ("tp", "dp-cp"): `count` groups of `size` ranks. Groups
 * are sorted by their first rank, and ranks ascend inside a group, by `offsets` from it.
 */
export function groupsAlong(mesh, axes) {
  const offsets = group_offsets(mesh, axes);
  const inner = axis_names(axes);
  const steps = []; // sizes of the axes, fastest first, and whether they lie inside a group
  for (const [name, size] of mesh.axes) if (size > 1) steps.push(size, inner.includes(name));
  const size = offsets.length;
  return { count: mesh.world_size / size, size, offsets, steps };
}

/** The first rank of a group. */
export function groupStart({ steps }, group) {
  let [left, start, stride] = [group, 0, 1];
  for (let at = 0; at < steps.length; at += 2) {
    const size = steps[at];
    if (!steps[at + 1]) {
      start += (left % size) * stride;
      left = Math.floor(left / size);
    }
    stride *= size;
  }
  return start;
}

/** The ranks of one group. */
export function groupRanks(groups, group) {
  const [ranks, start] = [Int32Array.from(groups.offsets), groupStart(groups, group)];
  for (let at = 0; at < ranks.length; at++) ranks[at] += start;
  return ranks;
}

/** All groups as lists of ranks. */
export const groupLists = (groups) => Array.from({ length: groups.count }, (_, group) => Array.from(groupRanks(groups, group)));

/** The number of a rank's group. */
export function groupOf({ steps }, rank) {
  let [left, group, weight] = [rank, 0, 1];
  for (let at = 0; at < steps.length; at += 2) {
    const size = steps[at];
    if (!steps[at + 1]) {
      group += (left % size) * weight;
      weight *= size;
    }
    left = Math.floor(left / size);
  }
  return group;
}

/** Coordinates of all ranks, rank by rank, each in mesh order. */
export function coordinateArray({ sizes, world_size }) {
  const found = new Int32Array(world_size * sizes.length);
  let at = 0;
  for (let rank = 0; rank < world_size; rank++) {
    let left = rank;
    for (const size of sizes) {
      const faster = Math.floor(left / size);
      found[at++] = left - faster * size;
      left = faster;
    }
  }
  return found;
}

/** The number of nodes that ascending ranks span. */
export function nodesOf(ranks, gpus_per_node) {
  let [nodes, before] = [0, -1];
  for (const rank of ranks) {
    const node = Math.floor(rank / gpus_per_node);
    if (node !== before) nodes++;
    before = node;
  }
  return nodes;
}
