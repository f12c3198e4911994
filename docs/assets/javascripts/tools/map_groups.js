// What the rank map says about groups, ranks and orders: plain data for the picture, the panels and
// the files. No document here.

import { grouped } from "../engine/errors.js";
import { AXES } from "../models/machine/frameworks.js";
import { coordinateArray, groupOf, groupRanks, groupsAlong, nodesOf } from "./map_ranks.js";
import { plain } from "../engine/records.js";
import { mesh_of } from "../models/machine/layout.js";
import { RankMesh, coordinates_of } from "../models/machine/mesh.js";
import { communicator } from "../models/machine/placement.js";

/** Shades of an axis; the group's number, which is written in the cell, selects one. */
export const SHADES = 7;

/** Spelled for readers: "tp-cp" is TP×CP. */
export const labelOf = (name) => name.toUpperCase().replaceAll("-", "×");

/** The axis whose hue a communicator gets: its first one, on the dense grid. */
export const hueOf = (name) => {
  const first = name.split("-")[0];
  return { etp: "tp", edp: "dp" }[first] ?? first;
};

const known = new WeakMap(); // layout → communicator → its groups

/** Groups of `name`; null for "none". Computed once per layout. */
export function groupsOf(parallel, name) {
  if (name === "none") return null;
  if (!known.has(parallel)) known.set(parallel, new Map());
  const views = known.get(parallel);
  if (!views.has(name)) {
    const mesh = mesh_of(parallel, name);
    views.set(name, { name, mesh, hue: hueOf(name), ...groupsAlong(mesh, name) });
  }
  return views.get(name);
}

/** The coordinates of a rank by axis. */
const pointOf = (mesh, rank) => plain(coordinates_of(mesh, rank));

/** Ranks in words: "0, 8, 16, 24"; a long list by its start and end, a regular one by its step. */
export function ranksInWords(ranks, most = 8) {
  const count = ranks.length;
  if (count <= most) return Array.from(ranks).join(", ");
  const step = ranks[1] - ranks[0];
  let even = true;
  for (let at = 1; at < count && even; at++) even = ranks[at] - ranks[at - 1] === step;
  if (even && step === 1) return `${ranks[0]} … ${ranks[count - 1]}`;
  const shown = Array.from(ranks.subarray(0, even ? 3 : most - 2)).join(", ");
  return `${shown}, … ${ranks[count - 1]}${even ? ` (every ${ordinal(step)})` : ""}`;
}

// The same where there is only room for three numbers.
function fewRanks(ranks) {
  const last = ranks[ranks.length - 1];
  if (ranks.length < 4) return Array.from(ranks).join(", ");
  return ranks[1] - ranks[0] === 1 && last - ranks[0] === ranks.length - 1
    ? `${ranks[0]} … ${last}`
    : `${ranks[0]}, ${ranks[1]} … ${last}`;
}

const ordinal = (n) => {
  const tens = n % 100 > 10 && n % 100 < 14;
  return `${n}${tens ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th")}`;
};

export const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

/** A row per communicator: its groups, where they are, and which links they use. */
export function communicatorRows(parallel, names) {
  return names
    .filter((name) => name !== "none")
    .map((name) => {
      const found = communicator(parallel, name);
      return {
        ...found,
        name,
        label: labelOf(name),
        long: found.label,
        grid: mesh_of(parallel, name) === parallel.dense ? "dense" : "expert",
        nodes: spanInWords(found.nodes_touched_min, found.nodes_touched_max),
        level: levelOf(found),
      };
    });
}

const spanInWords = (low, high) => (low === high ? String(high) : `${low}–${high}`);

/** The links over which neighbors in a communicator's rings communicate. */
export function levelOf({ size, intra_node_links, inter_node_links }) {
  if (size === 1) return "none";
  if (!inter_node_links) return "inside nodes";
  return intra_node_links ? "both" : "between nodes";
}

/** Everything that is known about one GPU. */
export function rankFacts(parallel, rank, names) {
  const { gpus_per_node } = parallel;
  const of = names
    .filter((name) => name !== "none")
    .map((name) => {
      const view = groupsOf(parallel, name);
      const group = groupOf(view, rank);
      const members = groupRanks(view, group);
      return {
        name,
        label: labelOf(name),
        hue: view.hue,
        group,
        members,
        size: members.length,
        place: members.indexOf(rank),
        nodes: nodesOf(members, gpus_per_node),
      };
    });
  return {
    rank,
    node: Math.floor(rank / gpus_per_node),
    local: rank % gpus_per_node,
    groups: of,
    dense: pointOf(parallel.dense, rank),
    expert: parallel.has_experts ? pointOf(parallel.expert, rank) : null,
  };
}

/** Coordinates in words: "tp 3, cp 1, dp 0, pp 2". */
export const pointInWords = (point) =>
  Object.entries(point)
    .map(([axis, at]) => `${axis} ${at}`)
    .join(", ");

/** One sentence about a GPU, for readers who cannot see the picture. */
export function rankSentence(parallel, rank, shown) {
  const facts = rankFacts(parallel, rank, shown === "none" ? [] : [shown]);
  const place = `Rank ${rank}, node ${facts.node}, GPU ${facts.local}: ${pointInWords(facts.dense)}`;
  const expert = facts.expert ? `; ${pointInWords(facts.expert)}` : "";
  const group = facts.groups
    .map((g) => `. ${g.label} group ${g.group}: ${ranksInWords(g.members)}`)
    .join("");
  return `${place}${expert}${group}.`;
}

/**
 * Which ranks hold a different part of the model than in Megatron's default order, that is, have
 * different dense coordinates. `first` is the lowest such rank with both points.
 */
export function movedRanks(parallel) {
  const dense = AXES.filter((axis) => axis !== "ep");
  const usual = new RankMesh(dense.map((axis) => [axis, parallel[axis]]));
  const moved = new Uint8Array(parallel.world_size);
  let [count, first] = [0, null];
  const divided = (mesh) => mesh.axes.filter(([, size]) => size > 1).join();
  if (divided(parallel.dense) === divided(usual)) return { moved, count, first };
  const [here, there] = [coordinateArray(parallel.dense), coordinateArray(usual)];
  const at = dense.map((axis) => parallel.dense.names.indexOf(axis));
  for (let rank = 0; rank < moved.length; rank++) {
    const start = 4 * rank;
    if (at.every((column, axis) => here[start + column] === there[start + axis])) continue;
    moved[rank] = 1;
    count++;
    first ??= { rank, here: pointOf(parallel.dense, rank), usual: pointOf(usual, rank) };
  }
  return { moved, count, first };
}

/** The same in a sentence. */
export function movedSentence(parallel, { count, first }) {
  const total = plural(parallel.world_size, "rank");
  if (!count) return `All ${total} hold the same part of the model as in Megatron's default order.`;
  const changed = Object.keys(first.usual).filter((axis) => first.usual[axis] !== first.here[axis]);
  const words = (point) => changed.map((axis) => `${axis} ${point[axis]}`).join(", ");
  return `${grouped(count)} of ${total} hold a different part of the model than in Megatron's default order; rank ${first.rank} is ${words(first.here)} instead of ${words(first.usual)}.`;
}

/** Legend entries of groups `from` … `from + count − 1`. */
export function legendOf(parallel, view, from, count) {
  const entries = [];
  for (let group = from; group < Math.min(view.count, from + count); group++) {
    const members = groupRanks(view, group);
    entries.push({
      group,
      shade: group % SHADES,
      words: fewRanks(members),
      nodes: nodesOf(members, parallel.gpus_per_node),
    });
  }
  return entries;
}

/** The title of a layout's picture. */
export function titleOf(parallel, show) {
  const { world_size, nodes, gpus_per_node, tp, cp, dp, pp, ep, etp } = parallel;
  const experts = ep > 1 ? `, EP ${ep}, ETP ${etp}` : "";
  const shown = show === "none" ? "" : `; colored by ${labelOf(show)} groups`;
  return `${grouped(world_size)} GPUs, ${grouped(nodes)} × ${gpus_per_node}: TP ${tp}, CP ${cp}, DP ${dp}, PP ${pp}${experts}${shown}`;
}
