// Where ranks sit and which groups leave their node; mirrors figgen.models.machine.placement.
//
// Ranks fill nodes in order. A group of n > 1 ranks is a ring in ascending rank order with n
// directed links, each to the next neighbour and the last back to the first.

import { checkSize, groupArray, axisNames, axisSize, axisStride } from "./mesh.js";
import { meshOf } from "./layout.js";

/** The communicators of `communicators`, in its order, and how they are called. */
export const LABELS = new Map([
  ["tp", "Tensor parallel"],
  ["cp", "Context parallel"],
  ["dp", "Data parallel"],
  ["pp", "Pipeline parallel"],
  ["dp-cp", "Gradient reduction (data × context)"],
  ["etp", "Expert tensor parallel"],
  ["ep", "Expert parallel"],
  ["edp", "Expert data parallel"],
]);

/** Number of nodes of each group of a `groupArray`. */
export function nodesTouched({ count, size, ranks }, gpus_per_node) {
  const touched = new Int32Array(count);
  let at = 0;
  for (let group = 0; group < count; group++) {
    // Ranks ascend within a group, so equal nodes are adjacent: count the changes.
    let [nodes, before] = [0, -1];
    for (let member = 0; member < size; member++) {
      const node = (ranks[at++] / gpus_per_node) | 0;
      if (node !== before) nodes++;
      before = node;
    }
    touched[group] = nodes;
  }
  return touched;
}

/** Directed ring links of each group whose two ends are on different nodes. */
export function interNodeLinks(rows, gpus_per_node) {
  // An ascending ring that visits several nodes enters each of them once.
  return nodesTouched(rows, gpus_per_node).map((nodes) => (nodes > 1 ? nodes : 0));
}

/** The summary of one communicator: an axis ("tp", "ep") or several together ("dp-cp"). */
export function communicator(parallel, axes) {
  return meshCommunicator(meshOf(parallel, axes), axes, parallel.gpus_per_node);
}

/** `communicator` for any mesh, on nodes of `gpus_per_node` GPUs. */
export function meshCommunicator(mesh, axes, gpus_per_node) {
  checkSize("gpus_per_node", gpus_per_node);
  const rows = groupArray(mesh, axes);
  let [least, most, crossing, inter] = [Infinity, 0, 0, 0];
  for (const nodes of nodesTouched(rows, gpus_per_node)) {
    if (nodes < least) least = nodes;
    if (nodes > most) most = nodes;
    if (nodes === 1) continue;
    crossing++;
    inter += nodes;
  }
  const links = rows.size > 1 ? rows.ranks.length : 0;
  return {
    name: axes,
    label: LABELS.get(axes) ?? axes.toUpperCase(),
    size: rows.size,
    group_count: rows.count,
    stride: uniformStride(mesh, axisNames(axes)),
    nodes_touched_min: least,
    nodes_touched_max: most,
    crossing_groups: crossing,
    intra_node_links: links - inter,
    inter_node_links: inter,
    inter_node_share: links ? inter / links : 0,
  };
}

/** Every communicator of `LABELS` that the layout has; expert ones only with experts. */
export function communicators(parallel) {
  const expert = ["etp", "ep", "edp"];
  const names = [...LABELS.keys()].filter((axes) => parallel.expert || !expert.includes(axes));
  return names.map((axes) => communicator(parallel, axes));
}

/** What is allowed but slow: tensor or expert groups that leave a node. Empty when none do. */
export function warnings(parallel) {
  const { gpus_per_node } = parallel;
  const found = [];
  // Undivided experts lie as their dense layers do.
  const divided = parallel.expert && (parallel.ep > 1 || parallel.etp !== parallel.tp);
  for (const name of divided ? ["tp", "etp", "ep"] : ["tp"]) {
    const summary = communicator(parallel, name);
    const axis = `${name.toUpperCase()}=${summary.size}`;
    const node = `a node of ${gpus_per_node} GPUs`;
    if (summary.size > gpus_per_node && name !== "ep") {
      found.push(`${axis} is larger than ${node}`);
    } else if (summary.size <= gpus_per_node && summary.crossing_groups) {
      const groups = `${summary.crossing_groups} of its ${summary.group_count} groups`;
      const nodes = `${summary.nodes_touched_max} nodes`;
      found.push(`${axis} fits in ${node}, but ${groups} touch up to ${nodes}`);
    }
  }
  return found;
}

// Rank distance between neighbours of a group if it is the same all along, else null.
function uniformStride(mesh, axes) {
  if (axes.length === 1) return axisStride(mesh, axes[0]);
  const wide = axes
    .map((axis) => [axisStride(mesh, axis), axisSize(mesh, axis)])
    .filter(([, size]) => size > 1)
    .sort(([a], [b]) => a - b);
  const even = wide.every(([stride], at) => !at || stride === wide[at - 1][0] * wide[at - 1][1]);
  return wide.length && even ? wide[0][0] : null;
}
