// Files of a layout, written when a reader asks for one: its picture, the JSON that `figgen ranks --json`
// prints, and the same memberships as CSV.

import { groupLists, groupRanks, groupsAlong, nodesOf } from "./map_ranks.js";
import { mesh_of } from "../models/machine/layout.js";
import { LABELS, communicator, warnings } from "../models/machine/placement.js";
import { groupsOf, titleOf } from "./map_groups.js";
import { inksOf } from "./map_inks.js";
import { fitted, paintCells } from "./map_paint.js";
import { WHOLE, arrange, boxAt } from "./map_scene.js";
import { cellOf, corner, round } from "./map_svg.js";

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
    const members = groupLists(groupsOf(parallel, name));
    if (!DENSE.includes(name) && !EXPERT.includes(name)) found.combined[name] = members;
    if (DENSE.includes(name)) found.dense[name] = members;
    if (EXPERT.includes(name) && parallel.has_experts)
      found.expert[name] = groupLists(groupsAlong(parallel.expert, name));
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
      groupRanks(view, group).forEach((rank, place) => {
        lines.push(
          `${name},${mesh},${group},${place},${rank},${Math.floor(rank / gpus_per_node)},${rank % gpus_per_node}`,
        );
      });
    }
  }
  return `${lines.join("\n")}\n`;
}

// Files look the same whatever the window's size.
function sceneOf({ nodes, gpus_per_node, world_size }) {
  const side = world_size > 1024 ? 2400 : 1200;
  return arrange(nodes, gpus_per_node, side, side * 0.75);
}

/** The picture as an SVG file. */
const svgFile = (picture) =>
  sceneFile(
    sceneOf(picture.parallel),
    picture,
    inksOf(picture.groups?.hue),
    titleOf(picture.parallel, picture.shown),
  );

/** The picture as a PNG, a blob. */
function pngFile(picture) {
  const [scene, inks] = [sceneOf(picture.parallel), inksOf(picture.groups?.hue)];
  const [canvas, top] = [document.createElement("canvas"), 28];
  const context = fitted(canvas, scene.width, scene.height + top, scene.width > 2000 ? 1 : 2);
  context.fillStyle = inks.paper;
  context.fillRect(0, 0, scene.width, scene.height + top);
  context.fillStyle = inks.ink;
  context.font = `13px ${inks.font}`;
  context.fillText(titleOf(picture.parallel, picture.shown), 2, 16);
  context.translate(0, top);
  paintCells(context, scene, WHOLE, picture, inks);
  // Chromium delays `toBlob` until it is idle, which took half a minute on a slow machine.
  const packed = atob(canvas.toDataURL("image/png").split(",")[1]);
  return new Blob([Uint8Array.from(packed, (one) => one.charCodeAt(0))], { type: "image/png" });
}

/** The picture as a standalone file, of any size, in the colors `inks`. */
function sceneFile(scene, picture, inks, title) {
  const [width, height] = [Math.ceil(scene.width), Math.ceil(scene.height) + 24];
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${inks.paper}"/>`,
    `<text x="2" y="14" font-size="12" fill="${inks.ink}">${escaped(title)}</text>`,
    `<g transform="translate(0 24)" text-anchor="middle" dominant-baseline="middle" fill="${inks.ink}">`,
  ];
  for (let node = 0; node < scene.nodes; node++) {
    const [left, top] = boxAt(scene, node);
    out.push(`<g data-node="${node}">`);
    if (scene.heading)
      out.push(
        `<text x="${round(left)}" y="${round(top - 7)}" font-size="10.5" text-anchor="start" fill="${inks.muted}">node ${node}</text>`,
      );
    for (let local = 0; local < scene.gpus; local++) {
      const rank = node * scene.gpus + local;
      const { x, y, side, group, shade, texts } = cellOf(scene, picture, rank);
      const fill = shade === "plain" ? inks.plain : inks.shades[shade];
      const size = round(Math.max(side, scene.cell * 0.85));
      out.push(
        `<rect data-rank="${rank}"${group === null ? "" : ` data-group="${group}"`} x="${round(x)}" y="${round(y)}" width="${size}" height="${size}" fill="${fill}"/>`,
      );
      for (const [word, tx, ty, letters, weight] of texts) {
        out.push(
          `<text x="${round(tx)}" y="${round(ty)}" font-size="${round(letters)}" font-weight="${weight}">${word}</text>`,
        );
      }
      if (picture.moved?.[rank]) out.push(`<path d="${corner(x + side, y, side * 0.28)}"/>`);
    }
    out.push("</g>");
  }
  out.push("</g></svg>\n");
  return out.join("\n");
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.codePointAt(0)};`);

/** The files that a reader can take away, by kind: how a picture's is written, and its type. */
export const FILES = {
  svg: [svgFile, "image/svg+xml"],
  png: [pngFile, "image/png"],
  json: [({ parallel }) => ranksJson(parallel), "application/json"],
  csv: [({ parallel }) => groupsCsv(parallel), "text/csv"],
};
