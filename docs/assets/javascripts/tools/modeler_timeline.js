// The pipeline of this configuration over time: one lane per rank, from the engine's simulation.

import { sum } from "../engine/runtime.js";
import { svgEl } from "./dom.js";
import { axis, box, label, picture, round, textWidth } from "./drawing.js";
import { secondsTo } from "./modeler_bars.js";
import { ACTIONS } from "./modeler_counts.js";
import { percent, seconds } from "./quantities.js";

const ROLES = { F: "forward", B: "backward", I: "backward-input", W: "backward-weight" };
const LETTERED = 700; // most actions for which each gets a box of its own
const MANY = 600; // actions of a lane, beyond which a picture of many lanes is slow to paint

/** The lanes that are drawn: all of them, or the first and last. */
export function lanesOf({ orders }) {
  const most = orders[0].length > MANY ? 8 : 32;
  if (orders.length <= most) return orders.map((_, rank) => rank);
  return [...Array(most).keys()].map((at) => (at < most / 2 ? at : orders.length - most + at));
}

/** `trace`, `before_s` and `after_s` are those of the engine's timeline. */
export function timelinePicture({ trace, before_s, after_s }, width) {
  const { schedule } = trace;
  const lanes = lanesOf(schedule);
  const total = before_s + trace.makespan + after_s;
  const left = 48;
  const height = lanes.length > 12 ? 14 : 22;
  const scale = (at) => left + (at / total) * (width - left - 1);
  const bottom = lanes.length * (height + 3) + 4;
  const count = sum(lanes.map((rank) => schedule.orders[rank].length));
  const children = lanes.flatMap((rank, lane) => {
    const y = lane * (height + 3) + 2;
    const gap = lane > 0 && rank !== lanes[lane - 1] + 1;
    return [
      label(`rank ${rank}`, 0, y + height / 2 + 4, height < 16 && lane % 2 ? { class: "modeler-quiet" } : {}),
      svgEl("rect", { class: "r-idle modeler-lane", x: left, y, width: width - left - 1, height }),
      gap
        ? svgEl("line", {
            class: "modeler-tick",
            x1: 0,
            x2: width,
            y1: y - 1.5,
            y2: y - 1.5,
            "stroke-dasharray": "2 3",
          })
        : null,
    ];
  });
  const place = ({ action, start, end, overlapped }, lane) => {
    const y = lane * (height + 3) + 2;
    const half = overlapped ? height / 2 : height;
    const lower = overlapped && action.kind !== "F";
    return {
      x: scale(before_s + start),
      end: scale(before_s + end),
      y: lower ? y + half : y,
      height: half,
    };
  };
  const drawn = count <= LETTERED ? boxes : paths;
  children.push(...drawn(trace, lanes, place));
  for (const [from, to, name] of [
    [0, before_s, "weights gathered"],
    [before_s + trace.makespan, total, "gradients reduced"],
  ]) {
    if (scale(to) - scale(from) > 0.5)
      children.push(
        box("dp", scale(from), 2, scale(to) - scale(from), bottom - 5, `${name}: ${seconds(to - from)}`, {
          "fill-opacity": 0.75,
        }),
      );
  }
  children.push(...axis(scale, total, bottom, secondsTo(total), width < 500 ? 3 : 6));
  const said = `${schedule.orders.length} pipeline ranks, ${schedule.microbatches} microbatches; ${percent(trace.bubble_fraction)} of the wall time of all ranks is idle`;
  return picture(`Pipeline timeline: ${said}`, width, bottom + 22, ...children);
}

function boxes(trace, lanes, place) {
  return lanes.flatMap((rank, lane) =>
    trace.placed_on(rank).flatMap((placed) => {
      const { x, end, y, height } = place(placed, lane);
      const { kind, stage, microbatch } = placed.action;
      const name = `${kind}${microbatch}, stage ${stage}: ${seconds(placed.end - placed.start)}`;
      const text = [`${kind}${microbatch}`, String(microbatch)].find((one) => textWidth(one) + 3 <= end - x);
      return [
        box(ROLES[kind], x, y, end - x, height, name),
        text && height > 12 ? label(text, round((x + end) / 2), y + height / 2 + 4, { "text-anchor": "middle" }) : null,
      ];
    }),
  );
}

// Thousands of actions are one path for each kind.
function paths(trace, lanes, place) {
  const dense = trace.schedule.orders[0].length > MANY; // outlines would hide everything else
  const drawn = Object.fromEntries(Object.keys(ROLES).map((kind) => [kind, []]));
  lanes.forEach((rank, lane) => {
    for (const placed of trace.placed_on(rank)) {
      const { x, end, y, height } = place(placed, lane);
      drawn[placed.action.kind].push(`M${x.toFixed(1)} ${y}H${end.toFixed(1)}v${height}H${x.toFixed(1)}z`);
    }
  });
  return Object.entries(drawn).map(([kind, found]) =>
    found.length
      ? svgEl("path", { class: `r-${ROLES[kind]} ${dense ? "modeler-lane" : "modeler-thin"}`, d: found.join("") })
      : null,
  );
}

/** The kinds of action that the trace has, for the legend: [role, letter, label]. */
export function kindsOf({ schedule }) {
  const present = new Set(schedule.orders.flatMap((order) => order.map(({ kind }) => kind)));
  return Object.keys(ROLES).filter((kind) => present.has(kind)).map((kind) => [ROLES[kind], kind, ACTIONS[kind]]);
}
