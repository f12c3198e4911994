// Boxes of several nodes, each painted whole. Loaded if the GPUs of a job would be specks.

import { grouped } from "../engine/errors.js";
import { SHADES, labelOf, plural } from "./map_groups.js";
import { boxAt } from "./map_scene.js";
import { eachBox, letterSize } from "./map_paint.js";
import { groupOf, groupRanks, groupStart } from "./map_ranks.js";

const INSIDE = 0; // the shade of boxes that keep all their groups inside
const known = new WeakMap(); // groups → what their boxes are, for one size of box

/**
 * For every box how many groups have GPUs in it, how many lie in it whole, and a shade, the same for
 * boxes with the same groups.
 */
export function boxesOf(scene, groups) {
  const { inBox, count } = scene;
  if (known.get(groups)?.inBox === inBox) return known.get(groups).boxes;
  const last = groups.offsets.at(-1);
  const seenIn = new Int32Array(groups.count).fill(-1);
  const sets = new Map();
  const boxes = Array.from({ length: scene.boxes }, (_, box) => {
    const [first, end] = [box * inBox, Math.min(count, (box + 1) * inBox)];
    let [touching, whole, sum, squares] = [0, 0, 0, 0];
    for (let rank = first; rank < end; rank++) {
      const group = groupOf(groups, rank);
      if (seenIn[group] === box) continue;
      seenIn[group] = box;
      touching++;
      sum += group;
      squares += group * group;
      if (groupStart(groups, group) >= first && groupStart(groups, group) + last < end) whole++;
    }
    const set = `${touching} ${sum} ${squares}`;
    if (!sets.has(set)) sets.set(set, sets.size);
    return { touching, whole, shade: whole === touching ? INSIDE : 1 + (sets.get(set) % (SHADES - 1)) };
  });
  known.set(groups, { inBox, boxes });
  return boxes;
}

// What each box shows: the number written in it and its shade, null where no group is shown in it.
function shownOf(scene, { groups, isolated }) {
  if (!groups) return Array(scene.boxes).fill({ word: "", shade: null });
  const boxes = boxesOf(scene, groups);
  if (isolated === null) return boxes.map(({ touching, shade }) => ({ word: String(touching), shade }));
  const members = new Int32Array(scene.boxes);
  for (const rank of groupRanks(groups, isolated)) members[Math.floor(rank / scene.inBox)]++;
  return boxes.map((_, box) => (members[box] ? { word: String(members[box]), shade: isolated % SHADES } : { word: "", shade: null }));
}

/** The boxes, by the groups that they have; `picture` and `inks` as for the cells of GPUs. */
export function paintBoxes(context, scene, view, picture, inks) {
  const size = scene.cell * view.scale;
  const [wide, tall] = [scene.columns * size, scene.rows * size];
  const shown = shownOf(scene, picture);
  const longest = Math.max(...shown.map(({ word }) => word.length), 1);
  const letters = letterSize(Math.min(wide, tall), longest, 1);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `${letters}px ${inks.font}`;
  eachBox(scene, view, (box, x, y) => {
    const { word, shade } = shown[box];
    context.fillStyle = shade === null ? inks.plain : inks.shades[shade];
    context.fillRect(x, y, wide, tall);
    context.fillStyle = inks.ink;
    if (letters) context.fillText(word, x + wide / 2, y + tall * 0.52);
    const first = box * scene.inBox;
    if (picture.moved?.subarray(first, first + scene.inBox).includes(1)) context.fillRect(x + wide - 4, y, 4, 4);
  });
}

/** Lines between the nodes of a box, where GPUs are seen. */
export function paintNodes(context, scene, view, ink) {
  const { gpus, columns, rows } = scene;
  const size = scene.cell * view.scale;
  const [across, down] = [Math.min(gpus, columns), Math.max(1, gpus / columns)];
  context.strokeStyle = ink;
  context.lineWidth = Math.max(1, size / 6);
  context.beginPath();
  eachBox(scene, view, (_, x, y) => {
    for (let at = across; at < columns; at += across) line(x + at * size, y, x + at * size, y + rows * size);
    for (let at = down; at < rows; at += down) line(x, y + at * size, x + columns * size, y + at * size);
  });
  context.stroke();
  function line(ax, ay, bx, by) {
    const half = context.lineWidth / 2; // in the gap before a cell
    context.moveTo(ax - half, ay - half);
    context.lineTo(bx - half, by - half);
  }
}

/** Frames around the boxes of ranks, as `paintMarks` frames cells. */
export function frameBoxes(context, scene, view, marks) {
  const size = scene.cell * view.scale;
  for (const { ranks, ink, width } of marks) {
    context.strokeStyle = ink;
    context.lineWidth = width;
    for (const box of new Set(Array.from(ranks, (rank) => Math.floor(rank / scene.inBox)))) {
      const [x, y] = boxAt(scene, box);
      context.strokeRect((x - view.x) * view.scale, (y - view.y) * view.scale, scene.columns * size, scene.rows * size);
    }
  }
}

/** The nodes of a rank's box and its groups, in words. */
export function boxInWords(scene, { groups }, rank) {
  const box = Math.floor(rank / scene.inBox);
  const last = Math.min(scene.nodes, (box + 1) * scene.per) - 1;
  const nodes = `Nodes ${grouped(box * scene.per)} to ${grouped(last)}`;
  if (!groups) return nodes;
  const { touching, whole } = boxesOf(scene, groups)[box];
  const inside = { 0: "none of them whole", [touching]: "all inside" }[whole] ?? `${whole} of them whole`;
  return `${nodes}: ${plural(touching, `${labelOf(groups.name)} group`)}, ${inside}`;
}

/** How to read the boxes. */
export function boxNote({ per, inBox }, { groups, isolated }) {
  const box = `A box is ${plural(per, "node")}, ${plural(inBox, "GPU")}`;
  const name = groups && labelOf(groups.name);
  const number = !groups
    ? "."
    : isolated === null
      ? `; its number counts the ${name} groups with GPUs in it. Boxes with the same groups have the same shade, which says nothing about the list of groups; the palest keep all of theirs inside.`
      : `; its number counts the GPUs of ${name} group ${isolated} in it.`;
  return `${box}${number} Zoom in to see GPUs.`;
}
