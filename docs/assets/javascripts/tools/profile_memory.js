// Memory in use over the events of a snapshot, by kind, as a picture.

import { el, svgEl } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [720, 240, 52, 12, 24];
const ORDER = ["weights", "optimizer", "gradients", "activations", "loss", "communication"];
const INKS = {
  weights: "--fig-series-5", optimizer: "--fig-series-4", gradients: "--fig-series-2", activations: "--fig-series-1",
  loss: "--fig-series-3", communication: "--fig-muted",
};
const inkOf = (kind) => `var(${INKS[kind] ?? "--fig-neutral"})`;

/** The picture of a history of moments, { bytes, event, reserved, kinds }, with its peak; null without one. */
export function memoryPicture(history, peak) {
  if (history.length < 2) return null;
  const found = new Set(history.flatMap(({ kinds }) => Object.keys(kinds)));
  const kinds = [...[...found].filter((kind) => !ORDER.includes(kind)).sort(), ...ORDER.filter((kind) => found.has(kind))];
  const most = history.reduce((top, { reserved, bytes }) => Math.max(top, reserved, bytes), 1);
  const last = history[history.length - 1].event;
  const x = ({ event }) => LEFT + ((WIDTH - LEFT - 8) * event) / last;
  const y = (bytes) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * bytes) / most;
  const below = history.map(() => 0);
  const areas = kinds.map((kind) => {
    const lower = history.map((moment, at) => [x(moment), y(below[at])]);
    history.forEach((moment, at) => { below[at] += moment.kinds[kind] ?? 0; });
    const upper = history.map((moment, at) => [x(moment), y(below[at])]);
    const points = [...upper, ...lower.reverse()].map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" ");
    return svgEl("polygon", { points, style: `fill: ${inkOf(kind)}` }, svgEl("title", {}, kind));
  });
  const line = history.map((moment) => `${x(moment).toFixed(1)},${y(moment.reserved).toFixed(1)}`).join(" ");
  const label = (text, at) => svgEl("text", { class: "profile-memory-text", ...at }, text);
  const gigabytes = (bytes) => `${(bytes / 1e9).toPrecision(3)} GB`;
  return el("figure", { class: "profile-memory" },
    el("div", { class: "profile-key" },
      kinds.map((kind) => el("span", {}, el("i", { style: `background: ${inkOf(kind)}` }), kind)),
      el("span", {}, el("i", { class: "profile-memory-line" }), "reserved")),
    svgEl("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Memory in use over ${last} events, by kind: at most ${gigabytes(peak.bytes)}, at event ${peak.event}, of ${gigabytes(peak.reserved)} reserved.` },
      areas,
      svgEl("polyline", { points: line, class: "profile-memory-reserved" }),
      svgEl("line", { x1: x(peak), x2: x(peak), y1: TOP, y2: HEIGHT - BOTTOM, class: "profile-memory-peak" }),
      [0, 0.5, 1].map((share) => label(gigabytes(share * most), { x: LEFT - 6, y: y(share * most) + 4, "text-anchor": "end" })),
      label("events of the allocator", { x: LEFT, y: HEIGHT - 6 }),
      label(`peak at ${peak.event}`, { x: Math.min(x(peak) + 5, WIDTH - 90), y: TOP + 10 })));
}
