// Paints the scene of the rank map on a canvas: cells by group, their text if there
// is room, marks, and the overview. Colors are passed as text.

import { boxAt, cellAt, seen } from "./map_scene.js";
import { SHADES } from "./map_groups.js";
import { groupOf } from "./map_ranks.js";

export const WRITTEN = 17; // smallest px of a cell with text
export const TWO_LINES = 30; // smallest px of a cell with both its rank and its group

/** The text of a cell: its rank, its group, or both. */
export function cellWords(cell, rank, group) {
  if (cell < WRITTEN) return [];
  if (group === null) return [String(rank)];
  return cell < TWO_LINES ? [String(group)] : [String(rank), String(group)];
}

/** Font size in a cell for which `digits` fit; 0 if they would be illegible. */
export function letterSize(cell, digits, lines) {
  const size = Math.min(13, (cell - 4) / (digits * 0.58), lines > 1 ? cell * 0.36 : cell * 0.55);
  return size < 8.5 ? 0 : size;
}

const gapOf = (cell) => (cell > 9 ? 1.5 : cell > 4.5 ? 0.75 : cell > 2.2 ? 0.35 : 0);

/** Calls `paint(box, x, y)` for every visible box, and `more` rows, in the pixels of the picture. */
export function eachBox(scene, view, paint, more = 0) {
  const [west, east, north, south] = seen(scene, view);
  for (let row = north; row <= Math.min(scene.down - 1, south + more); row++) {
    for (let column = west; column <= east; column++) {
      const box = row * scene.across + column;
      if (box >= scene.boxes) return;
      const [left, top] = boxAt(scene, box);
      paint(box, (left - view.x) * view.scale, (top - view.y) * view.scale);
    }
  }
}

// Calls `paint(rank, x, y)` for every visible GPU.
function eachSeen(scene, view, paint) {
  const size = scene.cell * view.scale;
  eachBox(scene, view, (box, x, y) => {
    const first = box * scene.inBox;
    const end = Math.min(scene.inBox, scene.count - first);
    for (let local = 0; local < end; local++) {
      const [left, top] = [x + (local % scene.columns) * size, y + Math.floor(local / scene.columns) * size];
      const out = left > scene.width || top > scene.height || left < -size || top < -size;
      if (!out) paint(first + local, left, top);
    }
  });
}

/** The cells, by group: `picture` is { groups, isolated, moved }; `inks` the colors as text. */
export function paintCells(context, scene, view, picture, inks) {
  const size = scene.cell * view.scale;
  const [gap, side] = [gapOf(size), size - gapOf(size)];
  const { groups, isolated, moved } = picture;
  // One path per color: a canvas is fast with large paths and slow with changes of color.
  const cells = Array.from({ length: SHADES + 1 }, () => []);
  eachSeen(scene, view, (rank, x, y) => {
    const group = groups ? groupOf(groups, rank) : -1;
    const plain = group < 0 || (isolated !== null && group !== isolated);
    cells[plain ? SHADES : group % SHADES].push(x, y);
  });
  cells.forEach((corners, shade) => {
    context.fillStyle = shade === SHADES ? inks.plain : inks.shades[shade];
    for (let at = 0; at < corners.length; at += 2)
      context.fillRect(corners[at], corners[at + 1], side, side);
  });
  if (size >= WRITTEN) write(context, scene, view, picture, inks, side);
  if (moved) markMoved(context, scene, view, moved, inks, size - gap);
  nameNodes(context, scene, view, inks);
}

function write(context, scene, view, { groups, isolated }, inks, side) {
  const size = scene.cell * view.scale;
  context.textAlign = "center";
  context.textBaseline = "middle";
  // Setting a font takes longer than writing with it, so words of one font and color are written together.
  const batches = new Map();
  eachSeen(scene, view, (rank, x, y) => {
    const group = groups ? groupOf(groups, rank) : null;
    const words = cellWords(size, rank, group);
    const digits = Math.max(...words.map((word) => word.length));
    const faded = isolated !== null && group !== isolated;
    words.forEach((word, line) => {
      const key = `${digits} ${words.length} ${line} ${Number(faded)}`;
      if (!batches.has(key)) batches.set(key, []);
      batches.get(key).push(word, x, y);
    });
  });
  for (const [key, words] of batches) {
    const [digits, lines, line, faded] = key.split(" ").map(Number);
    const letters = letterSize(size, digits, lines);
    if (!letters) continue;
    context.font = `${line ? "" : "600 "}${letters - line}px ${inks.font}`;
    context.fillStyle = faded ? inks.muted : inks.ink;
    const middle = side * (lines === 1 ? 0.52 : line ? 0.72 : 0.34);
    for (let at = 0; at < words.length; at += 3)
      context.fillText(words[at], words[at + 1] + side / 2, words[at + 2] + middle);
  }
}

function markMoved(context, scene, view, moved, inks, side) {
  context.fillStyle = inks.ink;
  const mark = Math.max(1.2, side * 0.28);
  context.beginPath();
  eachSeen(scene, view, (rank, x, y) => {
    if (!moved[rank]) return;
    context.moveTo(x + side - mark, y);
    context.lineTo(x + side, y);
    context.lineTo(x + side, y + mark);
    context.closePath();
  });
  context.fill();
}

function nameNodes(context, scene, view, inks) {
  const room = scene.heading
    ? scene.heading * view.scale
    : (scene.stepY - scene.rows * scene.cell) * view.scale;
  if (room < 11) return;
  context.font = `${Math.min(11, room - 2)}px ${inks.font}`;
  context.fillStyle = inks.muted;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const { per, across, nodes } = scene;
  eachBox(scene, view, (box, x, y) => {
    const last = Math.min(nodes, (box + 1) * per) - 1;
    const name = per > 1 ? `nodes ${box * per} to ${last}` : `node ${box}`;
    if (scene.heading || box >= across) context.fillText(name, x, y - 3);
  }, 1);
}

/** Frames around ranks: `marks` is a list of { ranks, ink, width }, painted in order. */
export function paintMarks(context, scene, view, marks) {
  const size = scene.cell * view.scale;
  const side = size - gapOf(size);
  for (const { ranks, ink, width, dashed } of marks) {
    const line = Math.min(width, Math.max(1, side * 0.35));
    context.strokeStyle = ink;
    context.lineWidth = line;
    context.setLineDash(dashed ? [3 * line, 2 * line] : []);
    context.beginPath();
    for (const rank of ranks) {
      const [left, top] = cellAt(scene, rank);
      const [x, y] = [(left - view.x) * view.scale, (top - view.y) * view.scale];
      if (x < -size || y < -size || x > scene.width || y > scene.height) continue;
      context.rect(x + line / 2 - 0.5, y + line / 2 - 0.5, side - line + 1, side - line + 1);
    }
    context.stroke();
  }
  context.setLineDash([]);
}

/** The frame of the visible part, above the overview. */
export function paintOverview(context, scene, view, whole, width, height, ink) {
  context.clearRect(0, 0, width, height);
  context.drawImage(whole, 0, 0, width, height);
  const [fx, fy] = [width / scene.width, height / scene.height];
  context.strokeStyle = ink;
  context.lineWidth = 2;
  context.strokeRect(
    view.x * fx + 1,
    view.y * fy + 1,
    (scene.width / view.scale) * fx - 2,
    (scene.height / view.scale) * fy - 2,
  );
}

/** A canvas context for a box of `width` × `height` px on a screen of `density`, cleared. */
export function fitted(canvas, width, height, density) {
  const [wide, tall] = [
    Math.max(1, Math.round(width * density)),
    Math.max(1, Math.round(height * density)),
  ];
  if (canvas.width !== wide || canvas.height !== tall)
    Object.assign(canvas, { width: wide, height: tall });
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
