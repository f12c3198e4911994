// The rank map as a cube: every GPU at its coordinates, TP across, CP and DP deep, PP up. It turns with
// the pointer and the arrow keys, and a choice made here also applies to the flat picture.

import { button, el, perFrame } from "./dom.js";
import { onPalette } from "./painting.js";
import { SHADES, groupsOf, membersOf, rankSentence } from "./map_groups.js";
import { inksOf } from "./map_inks.js";
import { fitted } from "./map_paint.js";
import { MOST_IN_CUBE, showsOf } from "./map_state.js";
import { coordinateArray } from "./map_ranks.js";

const TURN = Math.PI / 18;
const START = { yaw: -0.6, pitch: 0.45 };
const STILL = 4; // px that a pointer may move during a press

/** `onPoint(rank | null)`, `onPick(rank)` as the flat picture has them. Returns { element, show, point }. */
export function makeCube({ signal, onPoint, onPick }) {
  const canvas = el("canvas", { class: "map-cube", tabindex: 0, role: "img" });
  const byNode = el("input", { type: "checkbox", on: { change: () => paint() } });
  const said = el("p", { class: "map-note" });
  const again = button("Turn back", () => turn(START.yaw, START.pitch));
  const element = el("div", {}, el("div", { class: "tool-actions" },
    el("label", { class: "tool-check" }, byNode, "Color by node"), again), canvas, said);
  let [picture, points, view, pointed, drag] = [null, null, { ...START }, null, null];
  const paint = perFrame(() => picture && canvas.isConnected && paintNow());

  function show(next) {
    const other = picture?.parallel !== next.parallel;
    if (next.parallel.world_size > MOST_IN_CUBE) return;
    picture = next;
    if (other) points = pointsOf(next.parallel);
    said.textContent = wordsOf(next.parallel);
    describe();
    paint();
  }
  function describe() {
    const rank = pointed ?? picture.pinned;
    const chosen = rank === null ? "" : ` ${rankSentence(picture.parallel, rank, picture.shown)}`;
    canvas.setAttribute("aria-label", `${wordsOf(picture.parallel)}${chosen} Arrow keys turn it.`);
  }
  function point(rank) {
    if (rank === pointed) return;
    pointed = rank;
    if (picture) describe();
    paint();
  }
  function turn(yaw, pitch) {
    view = { yaw, pitch: Math.max(-1.4, Math.min(1.4, pitch)) };
    paint();
  }

  function paintNow() {
    const [width, height] = [Math.max(200, canvas.clientWidth), Math.max(200, canvas.clientHeight)];
    const context = fitted(canvas, width, height, Math.min(2, devicePixelRatio || 1));
    const scene = projected(points, view, width, height);
    const inks = inksOf(picture.groups?.hue);
    drawn = scene;
    paintAxes(context, scene, points, inks, false);
    const rank = pointed ?? picture.pinned;
    paintGroups(context, scene, picture, rank, inks);
    paintPoints(context, scene, picture, byNode.checked, rank, inks);
    paintAxes(context, scene, points, inks, true);
  }
  let drawn = null;

  const on = (kind, listener) => canvas.addEventListener(kind, listener, { signal });
  const under = ({ offsetX, offsetY }) => drawn && nearest(drawn, offsetX, offsetY);
  on("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, ...view, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  on("pointermove", (event) => {
    if (!drag) return event.pointerType === "touch" ? undefined : onPoint(under(event));
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    drag.moved ||= Math.hypot(dx, dy) > STILL;
    if (drag.moved) turn(drag.yaw + dx / 150, drag.pitch + dy / 150);
  });
  on("pointerup", (event) => {
    const rank = drag && !drag.moved ? under(event) : null;
    drag = null;
    if (rank !== null) onPick(rank);
  });
  on("pointercancel", () => (drag = null));
  on("pointerleave", () => !drag && onPoint(null));
  on("keydown", (event) => {
    const [yaw, pitch] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (yaw === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    turn(view.yaw + yaw * TURN, view.pitch + pitch * TURN);
  });
  const watcher = new ResizeObserver(paint);
  watcher.observe(canvas);
  signal.addEventListener("abort", () => watcher.disconnect());
  onPalette(() => {
    inksOf.forget();
    paint();
  }, signal);
  return { element, show, point };
}

const wordsOf = ({ tp, cp, dp, pp, world_size }) =>
  `${world_size} GPUs as a cube: TP ${tp} across, CP ${cp} times DP ${dp} deep, PP ${pp} up.`;

/** The position of every GPU, { sizes, at: three coordinates per rank }. */
export function pointsOf({ dense, tp, cp, dp, pp, world_size }) {
  const all = coordinateArray(dense);
  const column = (axis) => dense.names.indexOf(axis);
  const [t, c, d, p] = ["tp", "cp", "dp", "pp"].map(column);
  const at = new Float32Array(3 * world_size);
  for (let rank = 0; rank < world_size; rank++) {
    const here = dense.names.length * rank;
    at.set([all[here + t], all[here + c] + cp * all[here + d], all[here + p]], 3 * rank);
  }
  return { sizes: [tp, cp * dp, pp], at };
}

// Every point on the screen, and the order in which they are painted, far ones first.
function projected({ sizes, at }, { yaw, pitch }, width, height) {
  const longest = Math.max(...sizes, 2);
  // A short axis keeps some room between its planes.
  const steps = sizes.map((size) => (size > 1 ? Math.max(1, Math.sqrt(longest / size)) : 1));
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  // Leaves room for every yaw, so that nothing changes size while it turns.
  const [wide, deep, tall] = sizes.map((size, axis) => size * steps[axis]);
  const flat = Math.hypot(wide, deep);
  const unit = Math.min((width - 120) / flat, (height - 60) / (tall * cp + flat * Math.abs(sp)));
  const place = (point) => {
    const [x, y, z] = point.map((value, axis) => (value - (sizes[axis] - 1) / 2) * steps[axis]);
    const [across, far] = [x * cy - y * sy, x * sy + y * cy];
    return [width / 2 + across * unit, height / 2 - (z * cp - far * sp) * unit, far * cp + z * sp];
  };
  const count = at.length / 3;
  const placed = Array.from({ length: count }, (_, rank) => place([at[3 * rank], at[3 * rank + 1], at[3 * rank + 2]]));
  const order = Array.from(placed.keys()).sort((a, b) => placed[b][2] - placed[a][2]);
  return { placed, order, place, size: Math.max(3, Math.min(20, unit * 0.62)) };
}

function nearest({ placed, order, size }, x, y) {
  const hit = (rank) => Math.max(Math.abs(placed[rank][0] - x), Math.abs(placed[rank][1] - y)) <= size / 2 + 1;
  return order.findLast(hit) ?? null;
}

const AXES = [["tp", "TP"], ["dp", "CP·DP"], ["pp", "PP"]];

// The lines lie behind the GPUs, their names before them.
function paintAxes(context, { place }, { sizes }, inks, named) {
  context.font = `12px ${inks.font}`;
  AXES.forEach(([hue, name], axis) => {
    const from = [-0.7, -0.7, -0.7];
    const to = from.map((value, at) => (at === axis ? sizes[axis] - 0.3 : value));
    const [[x, y], [ex, ey]] = [place(from), place(to)];
    context.fillStyle = inks.axis[hue];
    context.strokeStyle = named ? inks.paper : inks.axis[hue];
    context.lineWidth = named ? 4 : 1.5;
    if (!named) return stroke(context, [[x, y], [ex, ey]]);
    context.textAlign = ex < x ? "right" : "left";
    for (const write of ["strokeText", "fillText"]) {
      context[write](`${name} ${sizes[axis]}`, ex + (ex < x ? -4 : 4), ey - 4);
    }
  });
  context.textAlign = "left";
}

function stroke(context, line) {
  context.beginPath();
  line.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

// Groups of the chosen communicator as thin rods; those of the GPU that is pointed at as thick ones,
// and those over two axes as planes.
function paintGroups(context, { placed }, { parallel, groups, isolated, shown }, rank, inks) {
  const line = (ranks) => Array.from(ranks, (one) => placed[one]);
  if (groups && groups.size > 1) {
    context.strokeStyle = inks.axis[groups.hue];
    context.lineWidth = 1;
    context.globalAlpha = 0.35;
    for (let group = 0; group < groups.count; group++) {
      if (isolated === null || isolated === group) stroke(context, line(membersOf(groups, group)));
    }
    context.globalAlpha = 1;
  }
  if (rank === null) return;
  for (const name of showsOf(parallel)) {
    if (name === "none") continue;
    const view = groupsOf(parallel, name);
    if (view.size < 2) continue;
    const members = line(membersOf(view, view.index[rank]));
    context.strokeStyle = context.fillStyle = inks.axis[view.hue];
    if (name.includes("-")) {
      context.globalAlpha = name === shown ? 0.3 : 0.12;
      fill(context, hull(members));
      context.globalAlpha = 1;
    } else {
      context.lineWidth = name === shown ? 5 : 2.5;
      context.setLineDash(name === "edp" || name === "etp" ? [6, 4] : []);
      stroke(context, members);
      context.setLineDash([]);
    }
  }
}

function fill(context, corners) {
  context.beginPath();
  corners.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.fill();
}

// The convex outline of points on the screen.
function hull(points) {
  const sorted = [...points].sort(([ax, ay], [bx, by]) => ax - bx || ay - by);
  const turns = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  const half = (all) => all.reduce((kept, next) => {
    while (kept.length > 1 && turns(kept.at(-2), kept.at(-1), next) <= 0) kept.pop();
    return [...kept, next];
  }, []);
  return [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}

function paintPoints(context, { placed, order, size }, { parallel, groups, isolated, pinned }, byNode, rank, inks) {
  context.lineWidth = 1;
  for (const one of order) {
    const [x, y] = placed[one];
    const group = groups?.index[one];
    const faded = isolated !== null && group !== isolated;
    const node = Math.floor(one / parallel.gpus_per_node);
    const shade = 12 + (node % SHADES) * 12;
    context.fillStyle = byNode ? `color-mix(in srgb, ${inks.ink} ${shade}%, ${inks.paper})` : groups ? inks.shades[group % SHADES] : inks.plain;
    context.globalAlpha = faded ? 0.15 : 1;
    context.fillRect(x - size / 2, y - size / 2, size, size);
    context.strokeStyle = inks.muted;
    if (size > 7) context.strokeRect(x - size / 2, y - size / 2, size, size);
    if (one === rank || one === pinned) {
      context.globalAlpha = 1;
      context.strokeStyle = inks.ink;
      context.lineWidth = 3;
      context.strokeRect(x - size / 2 - 1, y - size / 2 - 1, size + 2, size + 2);
      context.lineWidth = 1;
    }
  }
  context.globalAlpha = 1;
  if (rank === null) return;
  // The name of the GPU under the pointer lies above all others.
  const [x, y] = placed[rank];
  context.font = `600 12px ${inks.font}`;
  const text = `rank ${rank}, node ${Math.floor(rank / parallel.gpus_per_node)}`;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = inks.paper;
  context.fillStyle = inks.ink;
  context.strokeText(text, x + size, y - size / 2);
  context.fillText(text, x + size, y - size / 2);
}

