// Building blocks of the modeler's sections: tables, notes, patches of color.

import { el, svgEl } from "./dom.js";

/** A patch in the colors of a role. */
export const swatch = (role) =>
  el("span", {
    class: "modeler-swatch",
    style: `--role:var(--fig-${role}-soft);--edge:var(--fig-${role})`,
  });
export const note = (...words) => el("p", { class: "modeler-note" }, words);
export const num = (...given) => el("td", { class: "num" }, given);

const KINDS = { "#": "num", "~": "modeler-effect" };

/** Makes the numbers in `box` one stop of the Tab key, with arrow keys between them: modeler_popover.js. */
export function oneStop(box) {
  [...box.querySelectorAll("[data-how]")].forEach((number, at) => number.setAttribute("tabindex", at ? "-1" : "0"));
  return box;
}

/** A table in a box of its own; a heading that begins with # is above numbers, with ~ above bars. */
export function table(label, head, rows) {
  const box = el(
    "div",
    { class: "tool-scroll", "data-numbers": "", role: "group", "aria-label": label },
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
  // A box that scrolls is moved with the keyboard, which may reach it only through its first number.
  if (!box.querySelector("[data-how]")) box.setAttribute("tabindex", "0");
  return oneStop(box);
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
