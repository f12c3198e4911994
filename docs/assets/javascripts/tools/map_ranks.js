// The ranks of a mesh in typed arrays, for pictures and files of many ranks.

import { group_offsets, group_starts } from "../models/machine/mesh.js";

/**
 * Groups along one axis or several together ("tp", "dp-cp"): `count` groups of `size` ranks, group
 * after group in `ranks`. Groups are sorted by their first rank, and ranks ascend inside a group.
 */
export function groupArray(mesh, axes) {
  const [offsets, starts] = [group_offsets(mesh, axes), group_starts(mesh, axes)];
  const ranks = new Int32Array(mesh.world_size);
  let at = 0;
  for (const start of starts) for (const offset of offsets) ranks[at++] = start + offset;
  return { count: starts.length, size: offsets.length, ranks };
}

/** The ranks of one group, a view. */
export const groupRanks = ({ size, ranks }, group) => ranks.subarray(group * size, (group + 1) * size);

/** All groups as lists of ranks. */
export const groupLists = (rows) => Array.from({ length: rows.count }, (_, group) => Array.from(groupRanks(rows, group)));

/** The group of every rank, by number. */
export function groupIndex({ size, ranks }) {
  const index = new Int32Array(ranks.length);
  for (let at = 0; at < ranks.length; at++) index[ranks[at]] = Math.floor(at / size);
  return index;
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
