// Files of a layout: the JSON that `figgen ranks --json` prints, and the same memberships as CSV.

import { groupArray, groupLists, nodesOf } from "./map_ranks.js";
import { mesh_of } from "../models/machine/layout.js";
import { LABELS, communicator, warnings } from "../models/machine/placement.js";
import { groupsOf, membersOf } from "./map_groups.js";

const DENSE = ["tp", "cp", "dp", "pp"];
const EXPERT = ["etp", "ep", "edp", "pp"];

const namesOf = (parallel) =>
  [...LABELS.keys()].filter((name) => parallel.has_experts || !EXPERT.slice(0, 3).includes(name));

/** The command line's answer, as an object with its keys in the same order. */
export function ranksDocument(parallel) {
  const names = namesOf(parallel);
  const found = { dense: {}, expert: {}, combined: {} };
  const crossings = {};
  for (const name of names) {
    const members = groupLists(groupsOf(parallel, name).rows);
    if (!DENSE.includes(name) && !EXPERT.includes(name)) found.combined[name] = members;
    if (DENSE.includes(name)) found.dense[name] = members;
    if (EXPERT.includes(name) && parallel.has_experts)
      found.expert[name] = groupLists(groupArray(parallel.expert, name));
    // A ring of ascending ranks enters each of its nodes once, if there are several.
    const nodes = members.map((ranks) => nodesOf(ranks, parallel.gpus_per_node));
    crossings[name] = {
      ...communicator(parallel, name),
      inter_node_links_by_group: nodes.map((count) => (count > 1 ? count : 0)),
    };
  }
  const axes = [...DENSE, ...(parallel.has_experts ? ["ep", "etp", "edp"] : [])];
  const sizes = Object.fromEntries(axes.map((axis) => [axis, parallel[axis]]));
  return { world_size: parallel.world_size, sizes, ...found, crossings, warnings: warnings(parallel) };
}

/** The same as text, byte for byte as the command line prints it. */
export const ranksJson = (parallel) => `${spaced(ranksDocument(parallel))}\n`;

// JSON with a space after each comma and colon, as Python's json module writes it.
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, one]) => `${JSON.stringify(key)}: ${spaced(one)}`)
    .join(", ")}}`;
}

/** One line per rank and communicator: its group, and its position in the group. */
export function groupsCsv(parallel) {
  const lines = ["communicator,mesh,group,place,rank,node,local_rank"];
  const { gpus_per_node } = parallel;
  for (const name of namesOf(parallel)) {
    const view = groupsOf(parallel, name);
    const mesh = mesh_of(parallel, name) === parallel.dense ? "dense" : "expert";
    for (let group = 0; group < view.count; group++) {
      membersOf(view, group).forEach((rank, place) => {
        lines.push(
          `${name},${mesh},${group},${place},${rank},${Math.floor(rank / gpus_per_node)},${rank % gpus_per_node}`,
        );
      });
    }
  }
  return `${lines.join("\n")}\n`;
}

/** The command line that prints the same. */
export function commandLine({ nodes, gpus, tp, cp, ep, etp, pp, order }) {
  const given = [
    ["nodes", nodes],
    ["gpus-per-node", gpus],
    ["tp", tp],
  ];
  for (const [name, size] of [
    ["cp", cp],
    ["ep", ep],
    ["pp", pp],
  ])
    if (size !== 1) given.push([name, size]);
  if (etp !== null) given.push(["etp", etp]);
  if (order !== "megatron") given.push(["order", order]);
  return `figgen ranks ${given.map(([name, value]) => `--${name} ${value}`).join(" ")} --json`;
}
