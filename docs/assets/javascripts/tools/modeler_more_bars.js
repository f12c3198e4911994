// Bars of the modeler: memory by pipeline rank.

import { svgEl } from "./dom.js";
import { axis, box, label, picture, round, textWidth } from "./modeler_bars.js";
import { PARTS } from "./modeler_model.js";
import { bytes, plainNumber } from "./quantities.js";

/** Which pipeline ranks to draw: all, or the ends, the fullest and some between. */
export function shownRanks(ranks, fullest, most = 16) {
  if (ranks.length <= most) return ranks;
  const step = (ranks.length - 1) / (most - 2);
  const chosen = new Set([...Array(most - 1).keys()].map((at) => Math.round(at * step)).concat(fullest));
  return ranks.filter(({ pipeline_rank }) => chosen.has(pipeline_rank));
}

const SOLID = 0.5; // the soft surfaces of the neutral roles are too alike for neighbours

/** Memory of a GPU of each pipeline rank in parts, against the capacity. */
export function memoryBars({ memory }, width) {
  const ranks = shownRanks(memory.ranks, memory.fullest_rank);
  const left = 48;
  const most = Math.max(...memory.ranks.map((rank) => rank.total_bytes));
  const capacity = memory.capacity_bytes;
  const high = Math.max(most, capacity ?? 0) * 1.02;
  const scale = (value) => left + (value / high) * (width - left - 70);
  const height = 22;
  const bottom = ranks.length * height + 18;
  const line = capacity === null ? [] : capacityLine(round(scale(capacity)), bottom, width, capacity);
  const children = ranks.flatMap((rank, at) => {
    const y = 18 + at * height;
    let from = 0;
    const segments = PARTS.flatMap(([name, title, role]) => {
      const size = rank.bytes[name];
      const [x, end] = [scale(from), scale(from + size)];
      from += size;
      const number = at === 0 && textWidth(title) + 6 <= end - x ? title : "";
      return [
        box(role, x, y, end - x, 17, `${title}: ${bytes(size)}`, {
          style: `fill:var(--fig-${role})`,
          "fill-opacity": SOLID,
        }),
        number ? label(number, round((x + end) / 2), y + 12.5, { "text-anchor": "middle" }) : null,
      ];
    });
    const total = bytes(rank.total_bytes);
    return [
      label(
        `rank ${rank.pipeline_rank}`,
        0,
        y + 13,
        rank.pipeline_rank === memory.fullest_rank ? { class: "modeler-strong" } : {},
      ),
      ...segments,
      label(total, scale(from) + 6, y + 13, { class: "modeler-halo" }),
    ];
  });
  children.push(...axis(scale, high, bottom, (at) => `${plainNumber(at / 1e9)} GB`, width < 500 ? 3 : 6));
  // Bars lie below the line, and what is written beside them above it.
  const written = children.filter((one) => one?.classList.contains("modeler-halo"));
  return picture(
    `Memory of a GPU of each pipeline rank; the fullest needs ${bytes(most)}`,
    width,
    bottom + 22,
    ...children,
    ...line,
    ...written,
  );
}

const capacityLine = (x, bottom, width, capacity) => [
  svgEl("line", { class: "modeler-capacity", x1: x, x2: x, y1: 14, y2: bottom }),
  label(`capacity ${bytes(capacity)}`, x, 10, {
    "text-anchor": x > width - 90 ? "end" : "middle",
    class: "modeler-strong",
  }),
];
