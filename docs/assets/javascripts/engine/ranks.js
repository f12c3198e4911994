// Ranks of a mesh one by one: their coordinates, and the groups that they are in; mirrors the part of
// figgen.models.machine.mesh that a step does not need.

import { InputError } from "./errors.js";
import { groupArray, position } from "./mesh.js";

/** Global rank at `coordinates`, axis name → index; an axis of size 1 may be left out. */
export function rankOf(mesh, coordinates) {
  for (const name of Object.keys(coordinates)) position(mesh, name);
  let rank = 0;
  mesh.axes.forEach(([name, size], at) => {
    const given = Object.hasOwn(coordinates, name);
    if (!given && size > 1) {
      const expected = `${name}=0 … ${size - 1}`;
      throw new InputError(`coordinates without '${name}'`, { expected });
    }
    const index = given ? coordinates[name] : 0;
    if (!(index >= 0 && index < size)) {
      throw new InputError(`coordinate '${name}'`, { expected: `0 … ${size - 1}`, got: index });
    }
    rank += index * mesh.strides[at];
  });
  return rank;
}

/** Coordinates of `rank`, axis name → index; the inverse of `rankOf`. */
export function coordinatesOf(mesh, rank) {
  if (!(rank >= 0 && rank < mesh.world_size)) {
    throw new InputError("rank", { expected: `0 … ${mesh.world_size - 1}`, got: rank });
  }
  const index = ([name, size], at) => [name, Math.floor(rank / mesh.strides[at]) % size];
  return Object.fromEntries(mesh.axes.map(index));
}

/** Coordinates of all ranks, rank by rank, each in mesh order. */
export function coordinateArray(mesh) {
  const found = new Int32Array(mesh.world_size * mesh.axes.length);
  let at = 0;
  for (let rank = 0; rank < mesh.world_size; rank++) {
    let left = rank;
    for (const size of mesh.sizes) {
      const faster = Math.floor(left / size);
      found[at++] = left - faster * size;
      left = faster;
    }
  }
  return found;
}

/** The ranks of one group, a view. */
export function groupRanks({ size, ranks }, group) {
  return ranks.subarray(group * size, (group + 1) * size);
}

/** All groups as lists of ranks. */
export function groups(mesh, axes) {
  const found = groupArray(mesh, axes);
  return Array.from({ length: found.count }, (_, group) => Array.from(groupRanks(found, group)));
}

/** For every rank the number of the group that it is in. */
export function groupIndex({ size, ranks }) {
  const index = new Int32Array(ranks.length);
  for (let at = 0; at < ranks.length; at++) index[ranks[at]] = Math.floor(at / size);
  return index;
}
