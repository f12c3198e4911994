// The rank map as a cube: every GPU at its coordinates, TP across, CP and DP deep, PP up; in a large job,
// neighbors along its longest axes are one point. It turns with the pointer and the arrow keys, and a
// choice made here also applies to the flat picture.

import { grouped } from "../engine/errors.js";
import { button, el, perFrame } from "./dom.js";
import { onPalette } from "./painting.js";
import { SHADES, groupsOf, rankSentence } from "./map_groups.js";
import { inksOf } from "./map_inks.js";
import { fitted } from "./map_paint.js";
import { showsOf } from "./map_state.js";
import { coordinateArray, groupOf, groupRanks } from "./map_ranks.js";

const TURN = Math.PI / 18;
const START = { yaw: -0.6, pitch: 0.45 };
const STILL = 4; // px that a pointer may move during a press
const MOST_POINTS = 8192;

/** `onPoint(rank | null)`, `onPick(rank)` as the flat picture has them. Returns { element, show, point }. */
export function makeCube({ signal, onPoint, onPick }) {
  const canvas = el("canvas", { class: "map-cube", tabindex: 0, role: "img" });
  const byNode = el("input", { type: "checkbox", on: { change: () => paint() } });
  const said = el("p", { class: "map-note" });
  const again = button("Turn back", () => turn(START.yaw, START.pitch));
  const element = el("div", {}, el("div", { class: "tool-actions" },
    el("label", { class: "tool-check" }, byNode, "Color by node"), again), canvas, said);
  let [picture, points, rods, view, pointed, drag] = [null, null, [], { ...START }, null, null];
  const paint = perFrame(() => picture && canvas.isConnected && paintNow());

  function show(next) {
    const other = picture?.parallel !== next.parallel;
    if (other) points = pointsOf(next.parallel);
    if (other || picture.groups !== next.groups) rods = next.groups ? rodsOf(points, next.groups) : [];
    picture = next;
    said.textContent = wordsOf(next.parallel, points);
    describe();
    paint();
  }
  function describe() {
    const rank = pointed ?? picture.pinned;
    const chosen = rank === null ? "" : ` ${rankSentence(picture.parallel, rank, picture.shown)}`;
    canvas.setAttribute("aria-label", `${wordsOf(picture.parallel, points)}${chosen} Arrow keys turn it.`);
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
    paintGroups(context, scene, points, rods, picture, rank, inks);
    paintPoints(context, scene, points, picture, byNode.checked, rank, inks);
    paintAxes(context, scene, points, inks, true);
  }
  let drawn = null;

  const on = (kind, listener) => canvas.addEventListener(kind, listener, { signal });
  const under = ({ offsetX, offsetY }) => points.ranks[drawn && nearest(drawn, offsetX, offsetY)] ?? null;
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

const AXES = [["tp", "TP"], ["dp", "CP·DP"], ["pp", "PP"]];

function wordsOf({ tp, cp, dp, pp, world_size }, { joined }) {
  const along = AXES.flatMap(([, name], axis) => (joined[axis] > 1 ? [`${joined[axis]} along ${name}`] : []));
  const several = along.length ? ` Each box stands for several GPUs, ${along.join(" and ")}, and has the color of the first.` : "";
  return `${grouped(world_size)} GPUs as a cube: TP ${tp} across, CP ${cp} times DP ${grouped(dp)} deep, PP ${pp} up.${several}`;
}

/**
 * The points of the cube, at most `MOST_POINTS`: `sizes` along its axes, `joined` coordinates a point
 * along each, `at` three coordinates a point, the first of its `ranks`, and the point of every rank.
 */
export function pointsOf({ dense, tp, cp, dp, pp, world_size }) {
  const whole = [tp, cp * dp, pp];
  const joined = [1, 1, 1];
  const sizesNow = () => whole.map((size, axis) => Math.ceil(size / joined[axis]));
  for (let sizes = sizesNow(); sizes[0] * sizes[1] * sizes[2] > MOST_POINTS; sizes = sizesNow()) {
    joined[sizes.indexOf(Math.max(...sizes))] *= 2;
  }
  const sizes = sizesNow();
  const all = coordinateArray(dense);
  const [t, c, d, p] = ["tp", "cp", "dp", "pp"].map((axis) => dense.names.indexOf(axis));
  const pointAt = new Int32Array(sizes[0] * sizes[1] * sizes[2]).fill(-1); // by place in the cube
  const [at, ranks, pointOfRank] = [[], [], new Int32Array(world_size)];
  for (let rank = 0; rank < world_size; rank++) {
    const here = dense.names.length * rank;
    const [x, y, z] = [all[here + t], all[here + c] + cp * all[here + d], all[here + p]].map((value, axis) => Math.floor(value / joined[axis]));
    const place = x + sizes[0] * (y + sizes[1] * z);
    if (pointAt[place] < 0) {
      pointAt[place] = ranks.length;
      ranks.push(rank);
      at.push(x, y, z);
    }
    pointOfRank[rank] = pointAt[place];
  }
  return { sizes, joined, at, ranks, pointOfRank };
}

// The points of some ranks, each once in a row.
function pointsAlong({ pointOfRank }, ranks) {
  return Array.from(ranks, (rank) => pointOfRank[rank]).filter((point, at, all) => point !== all[at - 1]);
}

// The groups of the first ranks of all points, as [group, its points].
function rodsOf(points, groups) {
  const shown = new Set(points.ranks.map((rank) => groupOf(groups, rank)));
  return [...shown].map((group) => [group, pointsAlong(points, groupRanks(groups, group))]).filter(([, line]) => line.length > 1);
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

// The lines lie behind the GPUs, their names before them.
function paintAxes(context, { place }, { sizes, joined }, inks, named) {
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
      context[write](`${name} ${sizes[axis]}${joined[axis] > 1 ? ` × ${joined[axis]}` : ""}`, ex + (ex < x ? -4 : 4), ey - 4);
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
function paintGroups(context, { placed }, points, rods, { parallel, groups, isolated, shown }, rank, inks) {
  const line = (ranks) => pointsAlong(points, ranks).map((point) => placed[point]);
  if (rods.length) {
    context.strokeStyle = inks.axis[groups.hue];
    context.lineWidth = 1;
    context.globalAlpha = 0.35;
    for (const [group, along] of rods) {
      if (isolated === null || isolated === group) stroke(context, along.map((point) => placed[point]));
    }
    context.globalAlpha = 1;
  }
  if (rank === null) return;
  for (const name of showsOf(parallel)) {
    if (name === "none") continue;
    const view = groupsOf(parallel, name);
    if (view.size < 2) continue;
    const members = line(groupRanks(view, groupOf(view, rank)));
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

function paintPoints(context, { placed, order, size }, { ranks, pointOfRank }, { parallel, groups, isolated, pinned }, byNode, rank, inks) {
  const chosen = [rank, pinned].map((one) => (one === null ? null : pointOfRank[one]));
  context.lineWidth = 1;
  for (const point of order) {
    const [one, [x, y]] = [ranks[point], placed[point]];
    const group = groups ? groupOf(groups, one) : null;
    const faded = isolated !== null && group !== isolated;
    const node = Math.floor(one / parallel.gpus_per_node);
    const shade = 12 + (node % SHADES) * 12;
    context.fillStyle = byNode ? `color-mix(in srgb, ${inks.ink} ${shade}%, ${inks.paper})` : groups ? inks.shades[group % SHADES] : inks.plain;
    context.globalAlpha = faded ? 0.15 : 1;
    context.fillRect(x - size / 2, y - size / 2, size, size);
    context.strokeStyle = inks.muted;
    if (size > 7) context.strokeRect(x - size / 2, y - size / 2, size, size);
    if (chosen.includes(point)) {
      context.globalAlpha = 1;
      context.strokeStyle = inks.ink;
      context.lineWidth = 3;
      context.strokeRect(x - size / 2 - 1, y - size / 2 - 1, size + 2, size + 2);
      context.lineWidth = 1;
    }
  }
  context.globalAlpha = 1;
  if (rank === null) return;
  // What is pointed at is named above all others.
  const [x, y] = placed[pointOfRank[rank]];
  context.font = `600 12px ${inks.font}`;
  const text = `rank ${rank}, node ${Math.floor(rank / parallel.gpus_per_node)}`;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = inks.paper;
  context.fillStyle = inks.ink;
  context.strokeText(text, x + size, y - size / 2);
  context.fillText(text, x + size, y - size / 2);
}

