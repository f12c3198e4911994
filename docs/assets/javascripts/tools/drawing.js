// Shared parts of all the tools' drawings. They are drawn for the width of their box, so that text
// keeps its size; colors are classes of roles.css.

import { svgEl } from "./dom.js";

/** Width in px of a text at 11.5 px, a generous estimate. */
export const textWidth = (text) => 6.3 * text.length;

/** An SVG of this size with a description of what it shows. */
export const picture = (label, width, height, ...children) =>
  svgEl("svg", {
    class: "fig modeler-svg", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
  }, ...children);

export const label = (text, x, y, given = {}) => svgEl("text", { x, y, ...given }, text);

/** A box in the colors of a role, with a tooltip. */
export const box = (role, x, y, width, height, title, given = {}) =>
  svgEl(
    "rect",
    { class: `r-${role}`, x: round(x), y: round(y), width: round(Math.max(0, width)), height, ...given },
    title ? svgEl("title", {}, title) : null,
  );

export const round = (value) => Math.round(value * 100) / 100;

/** A round number of steps of 1, 2 or 5 up to `high`. */
export function ticksTo(high, most = 5) {
  if (!(high > 0) || !Number.isFinite(high)) return [0];
  const rough = high / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  return [...Array(Math.floor(high / step + 1e-9) + 1).keys()].map((at) => at * step);
}

export const axis = (scale, high, y, format, most) =>
  ticksTo(high, most).map((at) => {
    const x = round(scale(at));
    return svgEl("g", {},
      svgEl("line", { class: "modeler-tick", x1: x, x2: x, y1: y, y2: y + 4 }),
      label(format(at), x, y + 16, { class: "modeler-muted", "text-anchor": at ? "middle" : "start" }));
  });
