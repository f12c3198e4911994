// The position on the communication roofline: work per byte sent against what the links allow.

import { svgEl } from "./dom.js";
import { label, picture, round } from "./drawing.js";
import { percent, plainNumber, quantity } from "./quantities.js";

const ROLE = { "scale-up": "series-1", network: "series-2" };
const DASH = { "scale-up": null, network: "6 4" };

/** One roof and one point for each level of links; `names` are the names of the levels. */
export function roofline(levels, width, names) {
  const height = 240;
  const [left, right, top, bottom] = [46, 12, 34, height - 40];
  const ccrs = levels.flatMap(({ ccr, ridge }) => [ccr, ridge]);
  const low = Math.floor(Math.log10(Math.min(...ccrs)) - 0.7);
  const high = Math.ceil(Math.log10(Math.max(...ccrs)) + 0.3);
  const least = -2; // 1% of the rate
  const x = (ccr) => left + ((Math.log10(ccr) - low) / (high - low)) * (width - left - right);
  const y = (share) => bottom - ((Math.max(least, Math.log10(share)) - least) / (0.12 - least)) * (bottom - top);
  const ticks = [...Array(high - low + 1).keys()].map((at) => 10 ** (low + at));
  const every = width < 480 && ticks.length > 5 ? 2 : 1;
  const children = [
    ...[0.01, 0.1, 1].map((share) =>
      svgEl(
        "g",
        {},
        svgEl("line", { class: "modeler-grid", x1: left, x2: width - right, y1: round(y(share)), y2: round(y(share)) }),
        label(percent(share, 0), left - 6, y(share) + 4, { "text-anchor": "end", class: "modeler-muted" }),
      ),
    ),
    ...ticks
      .filter((_, at) => at % every === 0)
      .map((at) =>
        svgEl(
          "g",
          {},
          svgEl("line", { class: "modeler-tick", x1: round(x(at)), x2: round(x(at)), y1: bottom, y2: bottom + 4 }),
          label(quantity(at, "1", "si"), round(x(at)), bottom + 16, {
            "text-anchor": "middle",
            class: "modeler-muted",
          }),
        ),
      ),
    label("FLOP of computing per byte sent (log)", (left + width) / 2, height - 6, {
      "text-anchor": "middle",
      class: "modeler-muted",
    }),
  ];
  levels.forEach((level, index) =>
    children.push(
      ...roof(level, index, { x, y, low, right: width - right, bottom, names, least, other: levels[0].ccr }),
    ),
  );
  const said = levels.map(
    (level) =>
      `${names[level.level]} ${plainNumber(level.ccr)} FLOP/B against a ridge of ${plainNumber(level.ridge)}, ${percent(level.efficiency_with_overlap)} attainable`,
  );
  return picture(`Communication roofline: ${said.join("; ")}`, width, height, ...children);
}

function roof(
  { level, ccr, ridge, efficiency_with_overlap: share },
  index,
  { x, y, low, right, bottom, names, least, other },
) {
  const from = Math.max(10 ** low, ridge * 10 ** least);
  const line = `M${round(x(from))} ${round(y(from / ridge))}L${round(x(ridge))} ${round(y(1))}H${right}`;
  const [px, py, rx] = [round(x(ccr)), round(y(share)), round(x(ridge))];
  const ink = `--fig-${ROLE[level]}`;
  const look = { class: "modeler-point", style: `fill:var(${ink})` };
  const mark = index
    ? svgEl("rect", { x: px - 5, y: py - 5, width: 10, height: 10, ...look })
    : svgEl("circle", { cx: px, cy: py, r: 5.5, ...look });
  const anchor = px > right - 60 ? "end" : px < 110 ? "start" : "middle";
  // If two points are close to each other, their names are above and below.
  const below = index > 0 && other !== undefined && Math.abs(x(other) - px) < 100;
  return [
    svgEl("line", { class: "modeler-tick", x1: rx, x2: rx, y1: round(y(1)), y2: bottom, "stroke-dasharray": "1 3" }),
    label(`ridge ${plainNumber(ridge)}`, rx + (rx > right - 90 ? -5 : 5), bottom - 8 - 16 * index, {
      class: "modeler-muted",
      "text-anchor": rx > right - 90 ? "end" : "start",
    }),
    svgEl("path", { class: "modeler-roof", d: line, style: `stroke:var(${ink})`, "stroke-dasharray": DASH[level] }),
    mark,
    label(names[level], px, py + (below ? 22 : -12), { "text-anchor": anchor, class: "modeler-strong" }),
  ];
}
