// The pipeline as it runs with this configuration: one lane a rank, from the engine's simulation.

import { sum } from "../engine/orders.js";
import { svgEl } from "./dom.js";
import { axis, box, label, picture, round, textWidth } from "./drawing.js";
import { secondsTo } from "./modeler_bars.js";
import { percent, seconds } from "./quantities.js";

// Kinds of action by their number, as engine/orders.js has them: F, B, I, W.
const ROLES = ["forward", "backward", "backward-input", "backward-weight"];
const LETTERS = ["F", "B", "I", "W"];
const LETTERED = 700; // actions up to which each gets a box of its own
const MANY = 600; // actions of a lane, beyond which a picture of many lanes is slow to paint

/** Which lanes are drawn: all of them, or the first and last. */
export function lanesOf({ orders }) {
  const most = orders[0].length > MANY ? 8 : 32;
  if (orders.length <= most) return orders.map((_, rank) => rank);
  return [...Array(most).keys()].map((at) => (at < most / 2 ? at : orders.length - most + at));
}

/** `trace`, `before_s` and `after_s` are those of the engine's timeline. */
export function timelinePicture({ trace, before_s, after_s }, width) {
  const { schedule, start, end } = trace;
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
  const place = (rank, at, lane) => {
    const y = lane * (height + 3) + 2;
    const paired = trace.paired[rank][at];
    const half = paired ? height / 2 : height;
    const lower = paired && (schedule.orders[rank][at] & 3) !== 0;
    return {
      x: scale(before_s + start[rank][at]),
      end: scale(before_s + end[rank][at]),
      y: lower ? y + half : y,
      height: half,
    };
  };
  if (count <= LETTERED) children.push(...boxes(schedule, lanes, place, trace));
  else children.push(...paths(schedule, lanes, place));
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

// The number that a reader sees: the microbatch.
const microbatchOf = (schedule, code) => (code >> 2) % schedule.microbatches;
const stageOf = (schedule, code) => Math.floor((code >> 2) / schedule.microbatches);

function boxes(schedule, lanes, place, trace) {
  return lanes.flatMap((rank, lane) =>
    Array.from(schedule.orders[rank]).flatMap((code, at) => {
      const { x, end, y, height } = place(rank, at, lane);
      const [kind, microbatch] = [code & 3, microbatchOf(schedule, code)];
      const lasted = seconds(trace.end[rank][at] - trace.start[rank][at]);
      const name = `${LETTERS[kind]}${microbatch}, stage ${stageOf(schedule, code)}: ${lasted}`;
      const text = [`${LETTERS[kind]}${microbatch}`, String(microbatch)].find((one) => textWidth(one) + 3 <= end - x);
      return [
        box(ROLES[kind], x, y, end - x, height, name),
        text && height > 12 ? label(text, round((x + end) / 2), y + height / 2 + 4, { "text-anchor": "middle" }) : null,
      ];
    }),
  );
}

// Thousands of actions are one path for each kind.
function paths(schedule, lanes, place) {
  const dense = schedule.orders[0].length > MANY; // outlines would be all that is seen
  const drawn = ROLES.map(() => []);
  lanes.forEach((rank, lane) =>
    schedule.orders[rank].forEach((code, at) => {
      const { x, end, y, height } = place(rank, at, lane);
      drawn[code & 3].push(`M${x.toFixed(1)} ${y}H${end.toFixed(1)}v${height}H${x.toFixed(1)}z`);
    }),
  );
  return drawn.map((found, kind) =>
    found.length
      ? svgEl("path", { class: `r-${ROLES[kind]} ${dense ? "modeler-lane" : "modeler-thin"}`, d: found.join("") })
      : null,
  );
}

/** The kinds of action that the trace has, for the legend: [role, letter, label]. */
export function kindsOf({ schedule }) {
  const names = ["forward", "backward", "backward for inputs", "backward for weights"];
  const present = new Set(schedule.orders.flatMap((order) => Array.from(order, (code) => code & 3)));
  return [...present].sort().map((kind) => [ROLES[kind], LETTERS[kind], names[kind]]);
}
