// Compares layouts that a reader ticked: what differs, and where the time goes. Loaded on demand.

import { TABLES } from "../plan-memory.js";
import { button, el } from "./dom.js";
import { num, table } from "./modeler_table.js";
import { LAYOUT } from "./planner_table.js";
import { bytes, percent, seconds } from "./quantities.js";

/** A table with one column per layout, and a button that shows it, which stays on the screen while rows are ticked. */
export function comparison(rows) {
  const line = (title, cells) => el("tr", {}, el("th", { scope: "row" }, title), cells);
  const differs = (value) => rows.some((row) => value(row) !== value(rows[0]));
  const options = LAYOUT.filter(([, , , words]) => differs(words));
  const least = (values) => Math.min(...values);
  // The smallest value of a row is highlighted, if they differ.
  const sizes = (title, value, format) => {
    const all = rows.map(value);
    return line(title, all.map((size) => num(size === least(all) && differs(value) ? el("strong", {}, format(size)) : format(size))));
  };
  const terms = Object.entries(TABLES.terms).filter(([name]) => rows.some((row) => row.terms[name] > row.step_s / 1000));
  const shown = table("Ticked layouts side by side", ["Layout", ...rows.map(({ place }) => `#${place}`)].map((head, at) => (at ? `#${head}` : head)), [
    ...options.map(([, title, , words]) => line(title, rows.map((row) => num(words(row))))),
    sizes("Step", (row) => row.step_s, seconds), line("MFU", rows.map((row) => num(percent(row.mfu)))),
    sizes("Memory of the fullest GPU", (row) => row.memory_bytes, bytes),
    ...terms.map(([name, title]) => sizes(title, (row) => row.terms[name], seconds)),
  ]);
  shown.tabIndex = 0;
  const show = button(`Compare the ${rows.length} ticked layouts`, () => {
    shown.scrollIntoView();
    shown.focus();
  });
  return [el("p", { class: "plan-ticked" }, show), shown];
}
