// What the sections of the modeler are made of: tables, notes, patches of colour.

import { el, svgEl } from "./dom.js";

/** A patch in the colours of a role. */
export const swatch = (role, solid = false) =>
  el("span", {
    class: `modeler-swatch${solid ? " is-solid" : ""}`,
    style: `--role:var(--fig-${role}-soft);--edge:var(--fig-${role})`,
  });
export const note = (...words) => el("p", { class: "modeler-note" }, words);
export const num = (...given) => el("td", { class: "num" }, given);

const KINDS = { "#": "num", "~": "modeler-effect" };

/** A table in a box of its own; a heading that begins with # stands over numbers, with ~ over bars. */
export function table(label, head, rows) {
  return el(
    "div",
    { class: "tool-scroll", tabindex: "0", role: "group", "aria-label": label },
    el(
      "table",
      { class: "tool-table" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((name) => el("th", { scope: "col", class: KINDS[name[0]] }, name.replace(/^[#~]/, ""))),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

/** A bar in a cell: parts of a whole from the left, each [role, share of the cell]. */
export function barCell(parts, width = 120) {
  let from = 0;
  const boxes = parts.map(([role, share]) => {
    const x = from;
    from += share * (width - 1);
    const dashed = role === "hidden" ? " modeler-hidden" : "";
    return svgEl("rect", { class: `r-${role}${dashed}`, x: x + 0.5, y: 1, width: Math.max(1, from - x), height: 12 });
  });
  const drawn = svgEl("svg", { class: "fig", viewBox: `0 0 ${width} 14`, width, height: 14, "aria-hidden": "true" }, boxes);
  return el("td", { class: "modeler-effect" }, drawn);
}
