// What ran on each stream of a GPU over time, as a picture that a reader zooms and moves with keys,
// wheel and pointer.

import { button, el, perFrame } from "./dom.js";
import { onPalette } from "./painting.js";
import { fitted } from "./map_paint.js";
import { quantity } from "./quantities.js";

const [LANE, GAP, AXIS, LABELS] = [22, 6, 22, 76]; // px
const MOST_LANES = 12;
const LEAST_S = 2e-7; // the shortest visible span, about one kernel
const INKS = [
  ["matmuls and convolutions", "--fig-series-1", ["product", "convolution"]],
  ["attention", "--fig-series-5", ["attention"]],
  ["elementwise, fused and other memory-bound kernels", "--fig-series-3",
    ["fused", "elementwise", "normalization", "softmax", "reduction", "indexing", "quantization", "recurrence"]],
  ["optimizer", "--fig-series-4", ["optimizer"]],
  ["communication", "--fig-series-2", ["communication"]],
  ["copies, memory set, unknown", "--fig-neutral", ["copy", "memset", "other"]],
];
const time = (value) => quantity(value, "s", "time");

/** The picture of the lanes that lanes.py made of `recording`, whose kinds index `kinds`; null without lanes. */
export function lanesPicture(recording, kinds, signal) {
  const lanes = recording.lanes.slice(0, MOST_LANES);
  if (!lanes.length) return null;
  const inkOf = kinds.map((kind) => INKS.findIndex(([, , group]) => group.includes(kind)));
  const height = AXIS + lanes.length * (LANE + GAP);
  const said = el("p", { class: "profile-note profile-lanes-said", role: "status" });
  const canvas = el("canvas", {
    tabindex: 0, role: "img", height,
    "aria-label": `${lanes.length} streams over ${time(recording.seconds)}. Plus and minus zoom, arrow keys move, Home shows everything, Enter goes to the next step.`,
  });
  let [from, until, step] = [0, recording.seconds, -1];
  const draw = perFrame(() => paint(canvas, lanes, inkOf, recording.steps, [from, until], height));
  const show = (start, end) => {
    const span = Math.min(recording.seconds, Math.max(LEAST_S, end - start));
    from = Math.min(Math.max(0, start), recording.seconds - span);
    until = from + span;
    said.textContent = `${time(from)} to ${time(until)} of ${time(recording.seconds)}`;
    draw();
  };
  const zoom = (factor, at = (from + until) / 2) => show(at - (at - from) * factor, at + (until - at) * factor);
  const move = (share) => show(from + share * (until - from), until + share * (until - from));
  const nextStep = () => {
    if (!recording.steps.length) return;
    step = (step + 1) % recording.steps.length;
    const [name, start, end] = recording.steps[step];
    show(start, end);
    said.textContent = `${name}: ${said.textContent}`;
  };
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
    Home: () => show(0, recording.seconds), Enter: nextStep,
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  pointed(canvas, { zoom, show, span: () => [from, until], say: (text) => { said.textContent = text; }, under: (x, y) => under(lanes, recording, kinds, [from, until], x, y) });
  onPalette(draw, signal);
  const sized = new ResizeObserver(draw);
  sized.observe(canvas);
  signal.addEventListener("abort", () => sized.disconnect());
  return el("div", { class: "profile-lanes" },
    el("div", { class: "profile-key" }, INKS.map(([name, ink]) => el("span", {}, el("i", { style: `background: var(${ink})` }), name))),
    el("div", { class: "tool-actions" },
      button("Zoom in", keys["+"]), button("Zoom out", keys["-"]), button("Earlier", keys.ArrowLeft), button("Later", keys.ArrowRight),
      recording.steps.length ? button("Next step", nextStep) : null, button("Everything", keys.Home)),
    canvas, said,
    recording.lanes.length > MOST_LANES ? el("p", { class: "profile-note" }, `The ${MOST_LANES} busiest of ${recording.lanes.length} streams.`) : null);
}

// Wheel with Control zooms, dragging moves, pointing names the kernel.
function pointed(canvas, { zoom, show, span, say, under }) {
  let held = null;
  const share = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left - LABELS) / Math.max(1, box.width - LABELS), event.clientY - box.top];
  };
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const [from, until] = span();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, from + Math.min(1, Math.max(0, share(event)[0])) * (until - from));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: share(event)[0], span: span() };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = share(event);
    if (held) {
      const [from, until] = held.span;
      const moved = (held.x - x) * (until - from);
      show(from + moved, until + moved);
      return;
    }
    const text = under(x, y);
    if (text) say(text);
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => { held = null; });
  canvas.addEventListener("dblclick", (event) => {
    const [from, until] = span();
    zoom(0.25, from + share(event)[0] * (until - from));
  });
}

// The last event of a lane that begins at or before `at`; -1 before the first one.
function lastBefore(starts, at) {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function under(lanes, recording, kinds, [from, until], x, y) {
  const lane = lanes[Math.floor((y - AXIS) / (LANE + GAP))];
  if (!lane || x < 0 || x > 1 || y < AXIS) return "";
  const at = from + x * (until - from);
  const found = lastBefore(lane.starts, at);
  if (found < 0 || lane.ends[found] < at) return "";
  const name = recording.names[lane.names[found]];
  return `${lane.name}, ${kinds[lane.kinds[found]]}, ${time(lane.ends[found] - lane.starts[found])}: ${name.slice(0, 200)}`;
}

function paint(canvas, lanes, inkOf, steps, [from, until], height) {
  const width = canvas.clientWidth;
  if (!width) return;
  const context = fitted(canvas, width, height, Math.min(2, devicePixelRatio || 1));
  const style = getComputedStyle(canvas);
  const inks = INKS.map(([, name]) => style.getPropertyValue(name).trim());
  const text = style.color;
  const wide = width - LABELS;
  const place = (moment) => LABELS + ((moment - from) / (until - from)) * wide;
  context.font = `11px ${style.fontFamily}`;
  context.textBaseline = "middle";
  axis(context, style, [from, until], place, wide, text);
  context.fillStyle = style.getPropertyValue("--fig-grid").trim();
  for (const [, start, end] of steps) {
    for (const moment of [start, end]) if (moment >= from && moment <= until) context.fillRect(place(moment), AXIS - 4, 1, height - AXIS + 4);
  }
  lanes.forEach((lane, row) => {
    const y = AXIS + row * (LANE + GAP);
    context.fillStyle = text;
    context.fillText(lane.name.slice(0, 12), 0, y + LANE / 2);
    paintLane(context, lane, inkOf, inks, { from, until, place, wide, y });
  });
}

// A pixel shared by several kernels has the color of the kind that fills most of it.
function paintLane(context, { starts, ends, kinds }, inkOf, inks, { from, until, place, wide, y }) {
  const filled = new Float32Array(inks.length);
  const flush = (pixel) => {
    let most = 0;
    for (let ink = 1; ink < filled.length; ink++) if (filled[ink] > filled[most]) most = ink;
    if (filled[most] > 0) {
      context.fillStyle = inks[most];
      context.fillRect(LABELS + pixel, y, 1, LANE);
    }
    filled.fill(0);
  };
  let pixel = -1;
  for (let at = Math.max(0, lastBefore(starts, from)); at < starts.length && starts[at] <= until; at++) {
    if (ends[at] < from) continue;
    const [left, right] = [Math.max(place(starts[at]), LABELS), Math.min(place(ends[at]), LABELS + wide)];
    const ink = inkOf[kinds[at]];
    if (right - left >= 2) {
      context.fillStyle = inks[ink];
      context.fillRect(left, y, right - left - 0.5, LANE);
      continue;
    }
    const own = Math.floor(left - LABELS);
    if (own !== pixel && pixel >= 0) flush(pixel);
    pixel = own;
    filled[ink] += right - left;
  }
  if (pixel >= 0) flush(pixel);
}

function axis(context, style, [from, until], place, wide, text) {
  const span = until - from;
  const rough = span / Math.max(2, Math.floor(wide / 110));
  const power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map((unit) => unit * power).find((unit) => unit >= rough);
  context.fillStyle = text;
  for (let at = Math.ceil(from / tick) * tick; at <= until; at += tick) {
    const x = place(at);
    context.fillRect(x, AXIS - 6, 1, 4);
    if (x < LABELS + wide - 50) context.fillText(time(at), x + 3, 8);
  }
}
