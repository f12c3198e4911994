// Bars of the modeler: memory by pipeline rank.

import { svgEl } from "./dom.js";
import { axis, label, picture, round, textWidth } from "./drawing.js";
import { inked } from "./modeler_inks.js";
import { PARTS } from "./modeler_model.js";
import { bytes, plainNumber } from "./quantities.js";

/** Equal pipeline ranks in order: { first, last, rank, fullest }. */
export function alikeRanks({ ranks, fullest_rank }) {
  const found = [];
  const same = (one, other) =>
    one.layers === other.layers &&
    one.in_flight === other.in_flight &&
    PARTS.every(([name]) => bytes(one.bytes[name]) === bytes(other.bytes[name]));
  for (const rank of ranks) {
    const before = found.at(-1);
    const at = rank.pipeline_rank;
    if (before && same(before.rank, rank)) before.last = at;
    else found.push({ first: at, last: at, rank });
  }
  return found.map((group) => ({
    ...group,
    fullest: group.first <= fullest_rank && fullest_rank <= group.last,
  }));
}

/** If there are more groups than `most`: the ends, the fullest and some in between. */
export function shownGroups(groups, most) {
  if (groups.length <= most) return groups;
  const step = (groups.length - 1) / (most - 2);
  const chosen = new Set([...Array(most - 1).keys()].map((at) => Math.round(at * step)));
  return groups.filter(({ fullest }, at) => fullest || chosen.has(at));
}

export const nameOf = ({ first, last }) => (first === last ? plainNumber(first) : `${first}–${last}`);

/** Memory of a GPU of each pipeline rank in parts, against the capacity. */
export function memoryBars({ memory }, width) {
  const groups = shownGroups(alikeRanks(memory), 16);
  const most = Math.max(...memory.ranks.map((rank) => rank.total_bytes));
  const capacity = memory.capacity_bytes;
  const high = Math.max(most, capacity ?? 0) * 1.02;
  const names = groups.map((group) => `${group.first === group.last ? "rank" : "ranks"} ${nameOf(group)}`);
  const left = Math.max(...names.map(textWidth)) + 8;
  const right = 60; // the totals have their own column, which the capacity never crosses
  const scale = (value) => left + (value / high) * (width - left - right);
  const height = 22;
  const bottom = groups.length * height + 18;
  const bars = groups.flatMap(({ rank, fullest }, at) => {
    const y = 18 + at * height;
    const mark = fullest ? { class: "modeler-strong" } : {};
    return [
      label(names[at], 0, y + 13, mark),
      ...parts(rank, scale, y),
      label(bytes(rank.total_bytes), width, y + 13, { ...mark, "text-anchor": "end" }),
    ];
  });
  const line = capacity === null ? [] : capacityLine(round(scale(capacity)), bottom, width - right, capacity);
  const scaleLine = axis(scale, high, bottom, (at) => `${plainNumber(at / 1e9)} GB`, width < 500 ? 3 : 6);
  const said = `Memory of a GPU of each pipeline rank; the fullest needs ${bytes(most)}`;
  return picture(said, width, bottom + 22, ...bars, ...scaleLine, ...line);
}

function parts(rank, scale, y) {
  let from = 0;
  return PARTS.map(([name, title, role]) => {
    const size = rank.bytes[name];
    const [x, end] = [scale(from), scale(from + size)];
    from += size;
    const box = { x: round(x), y, width: round(Math.max(0, end - x)), height: 17 };
    return inked(role, box, svgEl("title", {}, `${title}: ${bytes(size)}`));
  });
}

const capacityLine = (x, bottom, right, capacity) => [
  svgEl("line", { class: "modeler-capacity", x1: x, x2: x, y1: 14, y2: bottom }),
  label(`capacity ${bytes(capacity)}`, x, 10, {
    "text-anchor": x > right - 60 ? "end" : "middle",
    class: "modeler-strong",
  }),
];
