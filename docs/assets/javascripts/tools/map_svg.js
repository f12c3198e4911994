// The scene of the rank map as SVG: the semantic drawing of a small cluster in the page.

import { svgEl } from "./dom.js";
import { SHADES } from "./map_groups.js";
import { groupOf } from "./map_ranks.js";
import { cellAt, boxAt } from "./map_scene.js";
import { cellWords, letterSize } from "./map_paint.js";

/** Most GPUs for which the picture in the page is an SVG; beyond, it is a canvas. */
export const MOST_ELEMENTS = 128;

/** The look of a cell: its class, and its texts as [text, x, y, size, weight]. */
export function cellOf(scene, { groups, isolated }, rank) {
  const [x, y] = cellAt(scene, rank);
  const group = groups ? groupOf(groups, rank) : null;
  const plain = group === null || (isolated !== null && group !== isolated);
  const side = scene.cell - 1.5;
  const words = cellWords(scene.cell, rank, group);
  const letters = letterSize(
    scene.cell,
    Math.max(1, ...words.map((word) => word.length)),
    words.length,
  );
  const texts = letters
    ? words.map((word, line) => {
        const middle = words.length === 1 ? 0.52 : line ? 0.72 : 0.34;
        return [word, x + side / 2, y + side * middle, letters - (line ? 1 : 0), line ? 400 : 600];
      })
    : [];
  return { x, y, side, group, plain, shade: plain ? "plain" : group % SHADES, texts };
}

/** An empty drawing for the page: a group per node, a rectangle and its texts per GPU. */
export function drawScene(scene) {
  const nodes = Array.from({ length: scene.nodes }, (_, node) => {
    const [left, top] = boxAt(scene, node);
    const parts = scene.heading
      ? [svgEl("text", { class: "map-node", x: left, y: top - 3 }, `node ${node}`)]
      : [];
    for (let local = 0; local < scene.gpus; local++) {
      const rank = node * scene.gpus + local;
      const [x, y] = cellAt(scene, rank);
      const side = scene.cell - 1.5;
      parts.push(
        svgEl(
          "g",
          { "data-rank": rank },
          svgEl("rect", { x, y, width: side, height: side, rx: 2 }),
          svgEl("text"),
          svgEl("text"),
        ),
      );
    }
    return svgEl("g", { "data-node": node }, parts);
  });
  return svgEl("svg", { viewBox: `0 0 ${scene.width} ${scene.height}`, "aria-hidden": "true" }, nodes);
}

/** Gives a drawing of `scene` the colors and the writing of a picture; touches only what changes. */
export function colourScene(drawing, scene, picture) {
  const { groups, moved } = picture;
  set(drawing, "class", `map-svg${groups ? ` map-of-${groups.hue}` : ""}`);
  for (const gpu of drawing.querySelectorAll("[data-rank]")) {
    const rank = Number(gpu.dataset.rank);
    const { x, y, side, group, shade, plain, texts } = cellOf(scene, picture, rank);
    const [cell, ...writing] = gpu.children;
    set(cell, "class", `map-${shade}`);
    set(gpu, "data-group", group);
    writing.slice(0, 2).forEach((text, line) => {
      const [word = "", tx = 0, ty = 0, size = 0, weight = 400] = texts[line] ?? [];
      if (text.textContent !== word) text.textContent = word;
      for (const [name, value] of Object.entries({
        x: tx,
        y: ty,
        "font-size": size,
        "font-weight": weight,
        class: plain && groups ? "is-faded" : null,
      }))
        set(text, name, value);
    });
    const mark = gpu.querySelector("path");
    if (moved?.[rank] && !mark)
      gpu.append(svgEl("path", { class: "map-moved", d: corner(x + side, y, side * 0.28) }));
    if (!moved?.[rank]) mark?.remove();
  }
}

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** The mark of a rank that moved, in the upper right corner of its cell. */
export const corner = (x, y, size) => `M${round(x - size)} ${round(y)}h${round(size)}v${round(size)}z`;
export const round = (value) => Math.round(value * 100) / 100;
