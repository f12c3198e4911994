// The best layouts as a table that is sorted by any of its columns.

import { TABLES } from "../plan-memory.js";
import { button, el } from "./dom.js";
import { wordOf } from "./modeler_options.js";
import { bytes, percent, plainNumber, seconds } from "./quantities.js";

/** A layout in one line; axes of one rank are left out. */
export function nameOf({ tp, cp, pp, ep, etp, dp, schedule, chunks, microbatches, microbatch_size, zero_stage, recompute }) {
  const axes = Object.entries({ TP: tp, CP: cp, PP: pp, EP: ep, DP: dp }).filter(([, size]) => size > 1);
  const words = axes.map(([axis, size]) => `${axis} ${plainNumber(size)}`);
  if (ep > 1 && etp !== 1) words.push(`ETP ${etp}`);
  if (pp > 1) words.push(`${wordOf("schedule", schedule) ?? schedule}${chunks > 1 ? ` × ${chunks}` : ""}`);
  words.push(`${plainNumber(microbatches)} × ${microbatch_size}`, `ZeRO-${zero_stage}`);
  if (recompute !== "none") words.push(`recompute ${recompute.replaceAll(",", ", ")}`);
  return words.join(" · ");
}

/** The term in which a layout exceeds the best most, as [name, words], or null for the best. */
export function losesBy(layout, best) {
  if (layout.step_s <= best.step_s) return null;
  const behind = Object.keys(TABLES.terms).map((term) => [term, layout.terms[term] - best.terms[term]]);
  const [term] = behind.reduce((most, one) => (one[1] > most[1] ? one : most));
  return [term, TABLES.terms[term]];
}

const COLUMNS = [
  ["place", "#", (row) => row.place],
  ["layout", "Layout", (row) => nameOf(row)],
  ["step", "Step", (row) => row.step_s],
  ["mfu", "MFU", (row) => -row.mfu],
  ["memory", "Memory", (row) => row.memory_bytes],
  ["fits", "Fits", (row) => -row.chance],
  ["loses", "Loses", (row) => row.step_s],
  ["by", "most by", (row) => row.by ?? ""],
];
const TEXTS = ["layout", "by"];

/**
 * Returns { element, show(rows, found) }; rows have place, apart, mfu, by and terms, the fastest of a mesh its variants;
 * `ways(row, found)` two queries.
 */
export function layoutTable(caption, ways) {
  let [rows, found, sorted, down] = [[], null, "place", false];
  const element = el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": caption });
  const sort = (name) => {
    down = sorted === name && !down;
    sorted = name;
    draw();
    element.querySelector(`[data-sort=${name}]`).focus();
  };
  function draw() {
    const [, , value] = COLUMNS.find(([name]) => name === sorted);
    const order = rows.map((row) => [value(row), row]);
    order.sort(([a], [b]) => (typeof a === "string" ? a.localeCompare(b) : a - b));
    if (down) order.reverse();
    const heads = COLUMNS.map(([name, title]) => el("th", {
      scope: "col", class: TEXTS.includes(name) ? null : "num",
      "aria-sort": sorted === name ? (down ? "descending" : "ascending") : "none",
    }, button(title, () => sort(name), { class: "plan-sort", "data-sort": name })));
    element.replaceChildren(el("table", { class: "tool-table plan-table" },
      el("caption", { class: "tool-live" }, caption),
      el("thead", {}, el("tr", {}, heads, el("th", { scope: "col" }, "Open in"))),
      el("tbody", {}, order.map(([, row]) => line(row)))));
  }
  function line(row) {
    const [low, high] = found.residuals.map((factor) => seconds(row.step_s * factor));
    const fastest = found.best[0].step_s;
    const { modeler, map } = ways(row, found);
    const name = nameOf(row);
    return el("tr", {},
      el("td", { class: "num" }, String(row.place), row.apart ? "" : el("abbr", { title: "too close to the best to call" }, "≈")),
      el("th", { scope: "row" }, name.replaceAll(/(?<=\d|×|[A-Z]) (?=\d|×)/g, "\u00a0"), row.variants > 1 ? el("small", {}, `fastest of ${plainNumber(row.variants)} of this mesh`) : ""),
      el("td", { class: "num" }, seconds(row.step_s), el("small", {}, `${low} to ${high}`)),
      el("td", { class: "num" }, percent(row.mfu)),
      el("td", { class: "num" }, bytes(row.memory_bytes)),
      el("td", { class: "num" }, row.chance === null ? "–" : `${Math.round(100 * Math.min(row.chance, 0.99))}%`),
      el("td", { class: "num" }, row.step_s > fastest ? percent(row.step_s / fastest - 1) : "–"),
      el("td", {}, row.by ?? ""),
      el("td", {}, el("a", { href: `../modeler/?${modeler}`, "aria-label": `${name}, in the modeler` }, "modeler"), " ",
        el("a", { href: `../rank-map/?${map}`, "aria-label": `${name}, in the map` }, "map")));
  }
  return {
    element,
    show(given, of) {
      [rows, found] = [given, of];
      draw();
    },
  };
}
