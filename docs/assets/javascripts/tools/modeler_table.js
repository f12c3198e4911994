// What the sections of the modeler are made of: tables, notes, patches of colour.

import { el } from "./dom.js";

/** A patch in the colours of a role. */
export const swatch = (role, solid = false) =>
  el("span", {
    class: `modeler-swatch${solid ? " is-solid" : ""}`,
    style: `--role:var(--fig-${role}-soft);--edge:var(--fig-${role})`,
  });
export const note = (...words) => el("p", { class: "modeler-note" }, words);
export const num = (...given) => el("td", { class: "num" }, given);

/** A table in a box of its own; a heading that begins with # stands over numbers. */
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
          head.map((name) =>
            el("th", { scope: "col", class: name.startsWith("#") ? "num" : null }, name.replace("#", "")),
          ),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}
