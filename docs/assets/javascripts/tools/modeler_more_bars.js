// Bars of the modeler: bytes by communicator, memory by pipeline rank.

import { svgEl } from "./dom.js";
import { axis, box, label, picture, round, textWidth } from "./modeler_bars.js";
import { PARTS, axisLabel, hueOf, transfersOf } from "./modeler_model.js";
import { bytes, plainNumber, seconds } from "./quantities.js";

/** Bytes that a GPU sends in a step, one bar for each communicator and level of link. */
export function transfers(found, width, levels) {
  const rows = transfersOf(found);
  if (!rows.length) return null;
  const narrow = width < 480;
  const left = narrow ? 0 : 190;
  const high = Math.max(...rows.map((row) => row.bytes));
  const room = width - left - 150;
  const height = narrow ? 40 : 26;
  const children = rows.flatMap((row, at) => {
    const y = at * height + 2;
    const name = `${axisLabel(row.axis)}, ${levels[row.level]}`;
    const length = Math.max(1.5, (row.bytes / high) * (narrow ? width - 150 : room));
    const numbers = `${bytes(row.bytes)} in ${seconds(row.time_s)}`;
    const top = narrow ? y + 15 : y;
    return [
      label(name, narrow ? 0 : left - 8, narrow ? y + 11 : y + 14, { "text-anchor": narrow ? "start" : "end" }),
      box(hueOf(row.axis), left + 0.5, top, length, 18, `${name}: ${numbers}`),
      label(numbers, left + length + 7, top + 13),
    ];
  });
  const told = rows.map((row) => `${axisLabel(row.axis)} ${levels[row.level]} ${bytes(row.bytes)}`).join(", ");
  return picture(`Bytes that a GPU sends in a step: ${told}`, width, rows.length * height + 4, ...children);
}

/** Exposed and hidden time of an exchange that takes `total`, one bar for each of [name, exposed]. */
export function ringBars(rows, total, width) {
  const left = 150;
  const scale = (value) => left + (value / total) * (width - left - 115);
  const children = rows.flatMap(([name, exposed], at) => {
    const y = at * 26 + 2;
    const shown = Math.min(exposed, total);
    return [
      label(name, left - 8, y + 14, { "text-anchor": "end" }),
      box("exposed", left, y, scale(shown) - left, 18, `exposed: ${seconds(exposed)}`),
      box("hidden", scale(shown), y, scale(total) - scale(shown), 18, `hidden: ${seconds(total - shown)}`, {
        class: "r-hidden modeler-hidden",
      }),
      label(`${seconds(exposed)} exposed`, scale(total) + 7, y + 13),
    ];
  });
  const said = rows.map(([name, exposed]) => `${name} ${seconds(exposed)} exposed`).join(", ");
  return picture(
    `Exchange of keys and values, ${seconds(total)} in all: ${said}`,
    width,
    rows.length * 26 + 2,
    ...children,
  );
}

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
