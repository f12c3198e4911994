// The position of every GPU in the picture of a cluster: nodes as boxes in rows, GPUs inside them; what
// is under a point, what is next to a GPU, and the part to which a reader has zoomed. If a GPU would be
// a speck, a box holds several nodes and is painted whole (map_boxes.js).

const LARGEST = 44; // px of a cell that has room for its rank and its group
const SPACE = 0.5; // between nodes, in cells
const UNDER = 0.22; // the same above the heading of a node
const HEADING = 14; // px above a node, where its cells are large enough to name it
export const NAMED = 15; // px of a cell from which nodes are named
export const DEEPEST = 60; // px that a cell is zoomed to at most
const SPECK = 4; // px below which cells of GPUs cannot be told apart
const BOX = 26; // px of a box of several nodes, at least

/** Column counts in which the GPUs of a node may be drawn. */
function shapes(gpus) {
  if (gpus <= 4) return [gpus];
  if (gpus <= 8) return [gpus, Math.ceil(gpus / 2)];
  const wide = Math.ceil(Math.sqrt(gpus));
  return [...new Set([8, wide, Math.min(gpus, 2 * wide)])];
}

// Numbers of nodes side by side to try: all divisors, and some numbers between them.
function* widths(nodes) {
  for (let across = 1; across <= nodes; across = across < 16 ? across + 1 : Math.ceil(across * 1.1))
    yield across;
  for (let across = 16; across * across <= 16 * nodes; across++) if (nodes % across === 0) yield across;
}

// Shapes of a box of several nodes: the squarest, with nodes side by side or in rows.
function boxShapes(gpus, inBox) {
  const wide = Array.from({ length: inBox }, (_, at) => at + 1).filter((columns) => columns % gpus === 0 || gpus % columns === 0);
  const off = (columns) => Math.abs(Math.log((columns * columns) / inBox));
  return wide.sort((one, other) => off(one) - off(other)).slice(0, 4);
}

/** The arrangement with the largest cells in `width` × `height` px, each GPU a cell. */
export const arrange = (nodes, gpus, width, height) =>
  scene({ nodes, gpus, per: 1 }, largest(nodes, shapes(gpus), gpus, SPACE, width, height), width);

/** The same, with boxes of several nodes if cells would be specks. */
export function arrangeBoxes(nodes, gpus, width, height) {
  const plain = arrange(nodes, gpus, width, height);
  if (plain.cell >= SPECK) return plain;
  let per = 2;
  while (width * height * per < BOX * BOX * nodes) per *= 2;
  const inBox = per * gpus;
  const found = largest(Math.ceil(nodes / per), boxShapes(gpus, inBox), inBox, Math.sqrt(inBox) / 10, width, height);
  return scene({ nodes, gpus, per }, found, width);
}

/** Whether boxes of several nodes are so small that they are painted whole. */
export const isFar = (scene, view) => scene.per > 1 && scene.cell * view.scale < SPECK;

// Single rows if they fit.
function largest(nodes, columnsTried, gpus, space, width, height) {
  let best = null;
  for (const columns of columnsTried) {
    const rows = Math.ceil(gpus / columns);
    for (const across of widths(nodes)) {
      const down = Math.ceil(nodes / across);
      const wide = width / (across * columns + (across - 1) * space);
      const room = height - down * HEADING;
      const named = room / (down * rows + (down - 1) * UNDER);
      const tall =
        named >= NAMED ? named : Math.min(NAMED - 0.01, height / (down * rows + (down - 1) * space));
      const cell = Math.min(LARGEST, wide, tall);
      // Full rows show repetition; for them, and for a node in one row, cells may be smaller.
      const score = cell * (nodes % across ? 0.75 : 1) * (rows === 1 ? 1.05 : 1);
      if (!best || score > best.score * 1.02) best = { columns, rows, across, down, cell, score, space };
    }
  }
  return best;
}

function scene({ nodes, gpus, per }, { columns, rows, across, down, cell, space }, width) {
  const heading = cell >= NAMED ? HEADING : 0;
  const under = heading ? UNDER : space;
  const [stepX, stepY] = [(columns + space) * cell, (rows + under) * cell + heading];
  const used = across * stepX - space * cell;
  return {
    nodes,
    gpus,
    per,
    boxes: Math.ceil(nodes / per),
    inBox: per * gpus,
    columns,
    rows,
    across,
    down,
    cell,
    heading,
    stepX,
    stepY,
    count: nodes * gpus,
    left: Math.max(0, (width - used) / 2),
    width,
    height: down * stepY - under * cell,
  };
}

/** Upper left corner of the cells of a box. */
export function boxAt(scene, box) {
  return [
    scene.left + (box % scene.across) * scene.stepX,
    Math.floor(box / scene.across) * scene.stepY + scene.heading,
  ];
}

/** Upper left corner of a GPU's cell. */
export function cellAt(scene, rank) {
  const local = rank % scene.inBox;
  const [x, y] = boxAt(scene, Math.floor(rank / scene.inBox));
  return [x + (local % scene.columns) * scene.cell, y + Math.floor(local / scene.columns) * scene.cell];
}

/** The rank at a point of the picture, or null between the cells. */
export function rankAt(scene, x, y) {
  const [column, row] = [Math.floor((x - scene.left) / scene.stepX), Math.floor(y / scene.stepY)];
  const box = row * scene.across + column;
  if (column < 0 || column >= scene.across || row < 0 || box >= scene.boxes) return null;
  const [left, top] = boxAt(scene, box);
  const [across, down] = [Math.floor((x - left) / scene.cell), Math.floor((y - top) / scene.cell)];
  const local = down * scene.columns + across;
  const inside = across >= 0 && across < scene.columns && down >= 0 && local < scene.inBox;
  const rank = box * scene.inBox + local;
  return inside && rank < scene.count ? rank : null;
}

/** The GPU to which an arrow key leads; beyond the edge of a box, its neighbor's. */
export function neighbour(scene, rank, dx, dy) {
  const [box, local] = [Math.floor(rank / scene.inBox), rank % scene.inBox];
  let [column, row] = [
    (box % scene.across) * scene.columns + (local % scene.columns) + dx,
    Math.floor(box / scene.across) * scene.rows + Math.floor(local / scene.columns) + dy,
  ];
  if (column < 0 || row < 0) return rank;
  const next = Math.floor(row / scene.rows) * scene.across + Math.floor(column / scene.columns);
  if (column >= scene.across * scene.columns || next >= scene.boxes) return rank;
  column %= scene.columns;
  row %= scene.rows;
  const place = row * scene.columns + column;
  const found = next * scene.inBox + place;
  return place < scene.inBox && found < scene.count ? found : rank;
}

/** The visible part of the scene: `scale` ≥ 1, and the point of the scene in the upper left corner. */
export const WHOLE = Object.freeze({ scale: 1, x: 0, y: 0 });

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** The largest scale: cells are not larger than necessary, and one is completely visible. */
export const deepest = ({ cell, heading, height }) =>
  Math.max(1, Math.min(DEEPEST / cell, height / (cell + heading)));

/** `view` with its scale and place inside the scene. */
export function inside(scene, { scale, x, y }) {
  const used = clamp(scale, 1, deepest(scene));
  return {
    scale: used,
    x: clamp(x, 0, scene.width * (1 - 1 / used)),
    y: clamp(y, 0, scene.height * (1 - 1 / used)),
  };
}

/** `view` zoomed by `factor`, with the point at (px, py) of the box staying where it is. */
export function zoomed(scene, view, factor, px, py) {
  const scale = clamp(view.scale * factor, 1, deepest(scene));
  const moved = 1 / view.scale - 1 / scale;
  return inside(scene, { scale, x: view.x + px * moved, y: view.y + py * moved });
}

/** `view` moved until `rank` is visible with some of its surroundings. */
export function revealing(scene, view, rank) {
  const [x, y] = cellAt(scene, rank);
  const scale = clamp(view.scale, 1, deepest(scene));
  const [wide, tall] = [scene.width / scale, scene.height / scale];
  const margin = Math.max(
    0,
    Math.min(scene.cell * 2, (wide - scene.cell) / 2, (tall - scene.cell - scene.heading) / 2),
  );
  return inside(scene, {
    scale,
    x: clamp(view.x, x + scene.cell + margin - wide, x - margin),
    y: clamp(view.y, y + scene.cell + margin - tall, y - margin - scene.heading),
  });
}

/** The visible columns and rows of boxes: [first column, last, first row, last]. */
export function seen(scene, { scale, x, y }) {
  const last = (start, size, step, count) =>
    Math.min(count - 1, Math.floor((start + size / scale) / step));
  const first = (start, step) => Math.max(0, Math.floor(start / step));
  return [
    first(x - scene.left, scene.stepX),
    last(x - scene.left, scene.width, scene.stepX, scene.across),
    first(y, scene.stepY),
    last(y, scene.height, scene.stepY, scene.down),
  ];
}
