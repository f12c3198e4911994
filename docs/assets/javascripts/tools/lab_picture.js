// Schedules on one axis of time: lanes of slots with what each rank holds below them, and the marks
// that follow the pointer and the cursor. Drawn for the width of their box; colors are classes.

import { held } from "../models/pipeline/schedule_work.js";
import { svgEl } from "./dom.js";
import { axis, box, label, round, textWidth } from "./drawing.js";
import { bytes, percent, plainNumber } from "./quantities.js";

/** The name of each kind of action, and the class of its color. */
export const KINDS = {
  F: ["forward", "forward"], B: ["backward", "backward"],
  I: ["backward for inputs", "backward-input"], W: ["backward for weights", "backward-weight"],
};
const LETTERED = 1500; // most slots of all pictures for which each gets a box
export const ms = (time) => `${plainNumber(time, 4)}\u00a0ms`;

/** The layout of the picture: { left, right, width, scale, groups, height }; a group is a schedule. */
export function planOf(runs, { width, strips, end }) {
  const lanes = runs.reduce((sum, run) => sum + run.lanes.length, 0);
  const height = lanes > 64 ? 9 : lanes > 26 ? 13 : 21;
  const strip = strips ? (height > 13 ? 15 : 6) : 0;
  const [left, right] = [height < 13 ? 26 : 42, strips ? 62 : 8];
  let y = 0;
  const groups = runs.map((run) => {
    const top = y + 22;
    y = top + run.lanes.length * (height + strip + 4) + 8;
    return { run, top };
  });
  const scale = (time) => left + (time / end) * (width - left - right);
  const back = (x) => ((x - left) / (width - left - right)) * end;
  return { groups, height, strip, step: height + strip + 4, left, right, width, end, scale, back, bottom: y };
}

/** The lanes of every group, and the axis below them. */
export function lanesOf(plan) {
  const { groups, width, bottom } = plan;
  const count = groups.reduce((sum, { run }) => sum + run.lanes.reduce((t, lane) => t + lane.length, 0), 0);
  const most = Math.max(...groups.map(({ run }) => Math.max(...run.peaks)));
  return [
    ...groups.flatMap((group) => groupOf(plan, group, count <= LETTERED, most)),
    ...axis(plan.scale, plan.end, bottom, (at) => (at ? ms(at) : "0"), width < 500 ? 3 : 6),
  ];
}

function groupOf(plan, { run, top }, lettered, most) {
  const { left, width, height, strip, step } = plan;
  const drawn = [label(headOf(run), 0, top - 7, { class: "modeler-strong" })];
  // A schedule does not idle after its own end.
  const lasts = Math.max(0, plan.scale(run.trace ? run.trace.makespan : plan.end) - left);
  run.lanes.forEach((lane, rank) => {
    const y = top + rank * step;
    if (height > 9 || rank % 4 === 0) drawn.push(label(height < 13 || width < 500 ? `r${rank}` : `rank ${rank}`, 0, y + height / 2 + 4));
    drawn.push(svgEl("rect", { class: "r-idle modeler-lane", x: left, y, width: round(lasts), height }));
    if (strip) drawn.push(...stripOf(plan, run, lane, y + height + 1, most));
  });
  const place = (slot) => slotBox(plan, top, slot);
  return [...drawn, ...(lettered ? boxes : paths)(run, place, height)];
}

const headOf = ({ title, trace }) =>
  !trace ? title : `${title}: ${ms(trace.makespan)}, ${percent(trace.bubble_fraction)} idle`;

// What a rank holds over time, as an area with its peak.
function stripOf({ scale, strip, width, right }, run, lane, y, most) {
  const steps = held(lane, run.bytes);
  const level = (amount) => round(y + strip - (most ? (amount / most) * strip : 0));
  let path = `M${round(scale(0))} ${round(y + strip)}`;
  for (const [time, amount] of steps) path += `H${round(scale(time))}V${level(amount)}`;
  return [
    svgEl("path", { class: "lab-held", d: `${path}H${round(scale(run.trace?.makespan ?? run.end))}V${round(y + strip)}z` }),
    label(bytes(Math.max(...steps.map(([, amount]) => amount))), width - right + 5, y + strip - 3, { class: "modeler-muted" }),
  ];
}

/** The rectangle of a slot: x, y, width, height. In a pair, the backward takes the lower half. */
export function slotBox({ scale, height, step }, top, { action, rank, start, end, overlapped }) {
  const x = scale(start);
  const part = overlapped ? height / 2 : height;
  const lower = overlapped && action.kind !== "F";
  return { x, y: top + rank * step + (lower ? part : 0), width: scale(end) - x, height: part };
}

// Later chunks of a rank are paler, as in the guide's figures.
function shades({ placement: { rank_of_stage } }) {
  const seen = [];
  const chunk = rank_of_stage.map((rank) => (seen[rank] = (seen[rank] ?? -1) + 1));
  const levels = Math.max(...chunk);
  return chunk.map((at) => (at ? round(1 - (0.6 * at) / levels) : null));
}

// The number of a stage within its rank as a subscript, "" if the rank has only one.
function chunkMarks({ placement: { chunks, rank_of_stage } }) {
  const seen = [];
  return rank_of_stage.map((rank) => {
    seen[rank] = (seen[rank] ?? 0) + 1;
    return chunks > 1 ? String.fromCharCode(...[...String(seen[rank])].map((digit) => 0x2080 + Number(digit))) : "";
  });
}

function boxes({ schedule, lanes }, place) {
  const shade = shades(schedule);
  const fits = (words, { width, height }) => textWidth(words) + 2 <= width && height > 9;
  const marks = chunkMarks(schedule);
  // Either every slot shows its chunk or none does.
  const words = ({ action: { stage, microbatch } }) => `${microbatch}${marks[stage]}`;
  const marked = lanes.flat().every((slot) => fits(words(slot), place(slot)));
  return lanes.flat().flatMap((slot) => {
    const { x, y, width, height } = place(slot);
    const { stage, kind, microbatch } = slot.action;
    const text = marked ? words(slot) : String(microbatch);
    return [
      box(KINDS[kind][1], x, y, width, height, null, { "fill-opacity": shade[stage] }),
      fits(text, { width, height }) ? label(text, round(x + width / 2), round(y + height / 2 + 4), { "text-anchor": "middle" }) : null,
    ];
  });
}

function paths({ schedule, lanes }, place) {
  const shade = shades(schedule);
  const drawn = new Map();
  for (const slot of lanes.flat()) {
    const { x, y, width, height } = place(slot);
    const key = `${slot.action.kind} ${shade[slot.action.stage] ?? 1}`;
    drawn.set(key, `${drawn.get(key) ?? ""}M${x.toFixed(1)} ${round(y)}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`);
  }
  return [...drawn].map(([key, d]) => {
    const [kind, opacity] = key.split(" ");
    return svgEl("path", { class: `r-${KINDS[kind][1]} modeler-thin`, "fill-opacity": opacity, d });
  });
}

/** The layer above the lanes: critical path, cursor, the chosen slot and its inputs. */
export function marksOf(plan, { cursor, chosen, paths: critical }) {
  const { groups, scale, width, right, step } = plan;
  const marks = [];
  for (const { run, top } of groups) {
    for (const slot of critical?.get(run.key) ?? []) marks.push(outline(slotBox(plan, top, slot), "lab-critical"));
  }
  if (cursor !== null && cursor < plan.end) {
    const x = round(scale(cursor));
    // It covers only the lanes, so that titles of schedules stay readable.
    for (const { run, top } of groups) {
      const height = run.lanes.length * step;
      marks.push(svgEl("rect", { class: "lab-later", x, y: top, width: round(Math.max(0, width - right - x)), height }));
      marks.push(svgEl("line", { class: "lab-cursor", x1: x, x2: x, y1: top, y2: top + height }));
    }
  }
  const group = chosen && groups.find(({ run }) => run.key === chosen.key);
  if (group) marks.push(...waitMarks(plan, group, chosen));
  return marks;
}

const outline = ({ x, y, width, height }, className) =>
  svgEl("rect", { class: className, x: round(x + 0.5), y: round(y + 0.5), width: round(Math.max(1, width - 1)), height: round(height - 1) });

function waitMarks(plan, { run, top }, { rank, at, inputs }) {
  const own = slotBox(plan, top, run.lanes[rank][at]);
  const from = inputs.map(({ source, time }) => {
    const there = slotBox(plan, top, source);
    const [x1, y1] = [there.x + there.width, there.y + there.height / 2];
    const [x2, y2] = [plan.scale(time), own.y + own.height / 2];
    return [
      outline(there, "lab-source"),
      source.rank === rank ? null : svgEl("path", { class: "lab-message", d: `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}H${round(own.x)}` }),
    ];
  });
  return [...from.flat(), outline(own, "lab-chosen")];
}

/** The slot at a point of the picture: { key, rank, at }, or null. */
export function slotAt(plan, x, y) {
  const { groups, step, height } = plan;
  const time = plan.back(x);
  for (const { run, top } of groups) {
    const rank = Math.floor((y - top) / step);
    if (rank < 0 || rank >= run.lanes.length || (y - top) % step > height) continue;
    const found = run.lanes[rank].findIndex(({ start, end }) => start <= time && time < end);
    if (found < 0) return null;
    const lower = (y - top) % step > height / 2;
    return { key: run.key, rank, at: run.lanes[rank][found].overlapped && lower ? found + 1 : found };
  }
  return null;
}

/** The kinds of action that the runs have, for the legend: [words, class]. */
export const kindsOf = (runs) =>
  Object.entries(KINDS).filter(([kind]) => runs.some(({ lanes }) => lanes.some((lane) => lane.some(({ action }) => action.kind === kind)))).map(([, names]) => names);
