// The rank mesh: a global rank as a point on a grid of named axes, and the groups along them.
//
// The engine's modules mirror figgen.models, without DOM and without dependencies; parity is kept
// by tests/browser. Functions are spelled as in JavaScript, data as in Python: what they return
// can be published beside the output of the command line.

import { InputError, unknown } from "./errors.js";

/** Named axes over the ranks 0 … world_size − 1, fastest first: pairs of name and size. */
export function rankMesh(axes) {
  if (!axes.length) {
    throw new InputError("a rank mesh", { expected: "at least one axis", got: axes });
  }
  for (const [name, size] of axes) checkSize(name, size);
  const names = axes.map(([name]) => name);
  if (new Set(names).size !== names.length) {
    throw new InputError("axes of a rank mesh", { expected: "each name once", got: names });
  }
  const sizes = axes.map(([, size]) => size);
  const strides = [];
  let world_size = 1;
  for (const size of sizes) {
    strides.push(world_size);
    world_size *= size;
  }
  return Object.freeze({ axes, names, sizes, strides, world_size });
}

/** `size` if it is an integer ≥ 1; an InputError that names the axis otherwise. */
export function checkSize(name, size) {
  if (Number.isInteger(size) && size >= 1) return size;
  throw new InputError(name, { expected: "a whole number ≥ 1", got: size });
}

export const axisSize = (mesh, axis) => mesh.sizes[position(mesh, axis)];

/** Distance in rank between neighbours along `axis`: the product of all faster sizes. */
export const axisStride = (mesh, axis) => mesh.strides[position(mesh, axis)];

/**
 * Groups along one axis or several together ("tp", "dp-cp"): `count` groups of `size` ranks, group
 * after group in `ranks`. Two ranks share a group when all other coordinates are equal. Groups are
 * sorted by their first rank and ranks ascend inside a group, which is Megatron's order.
 */
export function groupArray(mesh, axes) {
  const inside = new Set(axisNames(axes).map((name) => position(mesh, name)));
  const among = offsets(mesh, (at) => inside.has(at));
  const first = offsets(mesh, (at) => !inside.has(at));
  const ranks = new Int32Array(mesh.world_size);
  let at = 0;
  for (let group = 0; group < first.length; group++) {
    for (let member = 0; member < among.length; member++) {
      ranks[at++] = first[group] + among[member];
    }
  }
  return { count: first.length, size: among.length, ranks };
}

/** Axis names from "dp-cp" or a list of names. */
export function axisNames(axes) {
  const names = typeof axes === "string" ? axes.split("-") : [...axes];
  if (!names.length || new Set(names).size !== names.length) {
    throw new InputError("axes of a group", { expected: "one or more, each once", got: axes });
  }
  return names;
}

export function position(mesh, axis) {
  const at = mesh.names.indexOf(axis);
  if (at < 0) throw unknown("axis", axis, mesh.names);
  return at;
}

// Ranks at which the chosen axes take all their values and the others 0, ascending.
function offsets(mesh, chosen) {
  const count = mesh.sizes.reduce((total, size, at) => (chosen(at) ? total * size : total), 1);
  const found = new Int32Array(count);
  let filled = 1;
  mesh.sizes.forEach((size, axis) => {
    if (!chosen(axis)) return;
    for (let at = filled; at < filled * size; at++) {
      found[at] = found[at - filled] + mesh.strides[axis];
    }
    filled *= size;
  });
  return found;
}
