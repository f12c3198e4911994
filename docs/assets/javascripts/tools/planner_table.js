// The best layouts as a table that can be sorted by any of its columns.

import { chance_shown } from "../models/memory/fit_probability.js";
import { layout_kind } from "../models/planner/layout_kind.js";
import { TABLES } from "../plan-memory.js";
import { button, el } from "./dom.js";
import { wordOf } from "./modeler_options.js";
import { bytes, percent, plainNumber, seconds, span } from "./quantities.js";

/** A layout in one line, without axes of one rank. */
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

const AXES = ["tp", "cp", "pp", "ep", "etp", "dp"];
const scheduleOf = ({ pp, schedule, chunks }) =>
  (pp > 1 ? `${wordOf("schedule", schedule) ?? schedule}${chunks > 1 ? ` × ${chunks}` : ""}` : "–");

/** Columns of a layout: [key, title, number or text to sort by, displayed text]. */
export const LAYOUT = [
  ...AXES.map((key) => [key, key.toUpperCase(), (row) => row[key], (row) => plainNumber(row[key])]),
  ["schedule", "Schedule", scheduleOf, scheduleOf],
  ["batch", "Batch", (row) => row.microbatches, (row) => `${plainNumber(row.microbatches)}\u00a0×\u00a0${row.microbatch_size}`],
  ["zero", "ZeRO", (row) => row.zero_stage, (row) => String(row.zero_stage)],
  ["recompute", "Recompute", (row) => row.recompute, (row) => (wordOf("recompute", row.recompute) ?? row.recompute).replaceAll(",", ", ")],
];
const COSTS = [
  ["step", "Step", (row) => row.step_s],
  ["mfu", "MFU", (row) => -row.mfu],
  ["memory", "Memory", (row) => row.memory_bytes],
  ["fits", "Fits", (row) => -row.chance],
  ["loses", "Loses", (row) => row.step_s],
];
const COLUMNS = [["place", "#", (row) => row.place], ...LAYOUT, ...COSTS];
const TEXTS = ["schedule", "recompute"];

/** Whether anybody has published a time of such a layout on the accelerator; true of one's own, of which nobody can. */
function isTimed({ tp, cp, pp, ep, zero_stage }, { chip, mixture }) {
  const [dense, experts] = TABLES.timed[chip] ?? [[], []];
  return chip === "own" || (mixture ? experts : dense).includes(layout_kind(tp, cp, pp, ep, zero_stage));
}

/**
 * Returns { element, show(rows, found) }; rows have place, apart, mfu, by and terms, the fastest of a mesh its variants;
 * `ways(row, found)` two queries. Rows can be ticked where `onTicked(rows)` takes them.
 */
export function layoutTable(caption, ways, onTicked = null) {
  let [rows, found, sorted, down, ticked] = [[], null, "place", false, new Set()];
  const element = el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": caption });
  const untimed = el("p", { class: "modeler-note" }, "° Nobody has published a time for such a layout on this accelerator: these axes, with or without ZeRO-3, for a model with experts or without.");
  const whole = el("div", {}, element, untimed);
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
    // An axis that no layout uses gets no column.
    const shown = LAYOUT.filter(([key]) => key === sorted || !AXES.includes(key) || rows.some((row) => row[key] > 1 && (key !== "etp" || row.ep > 1)));
    const heads = COLUMNS.filter((column) => !LAYOUT.includes(column) || shown.includes(column)).map(([name, title]) => el("th", {
      scope: "col", class: TEXTS.includes(name) ? null : "num",
      "aria-sort": sorted === name ? (down ? "descending" : "ascending") : "none",
    }, button(title, () => sort(name), { class: "plan-sort", "data-sort": name })));
    element.replaceChildren(el("table", { class: "tool-table plan-table" },
      el("caption", { class: "tool-live" }, caption),
      el("thead", {}, el("tr", {}, heads, el("th", { scope: "col" }, "Open in"))),
      el("tbody", {}, order.map(([, row]) => line(row, shown)))));
    untimed.hidden = rows.every((row) => isTimed(row, found));
  }
  function tick(row) {
    const box = el("input", {
      type: "checkbox", checked: ticked.has(row), "aria-label": `Compare ${nameOf(row)}`,
      on: { change: () => { ticked[box.checked ? "add" : "delete"](row); onTicked([...ticked]); } },
    });
    return el("label", { class: "plan-tick" }, box, String(row.place));
  }
  function line(row, shown) {
    const within = span(...found.interval.map((factor) => row.step_s * factor));
    const fastest = found.best[0].step_s;
    const { modeler, map } = ways(row, found);
    const name = nameOf(row);
    return el("tr", {},
      el("th", { scope: "row", class: "num" }, onTicked ? tick(row) : String(row.place), row.apart ? "" : el("abbr", { title: "too close to the best to call" }, "≈"),
        isTimed(row, found) ? "" : el("abbr", { title: "nobody has published a time for such a layout" }, "°"),
        row.variants > 1 ? el("small", { title: "layouts of this mesh that fit" }, `of ${plainNumber(row.variants)}`) : ""),
      shown.map(([key, , , words]) => el("td", { class: TEXTS.includes(key) ? null : "num" }, words(row))),
      el("td", { class: "num" }, seconds(row.step_s), el("small", {}, within)),
      el("td", { class: "num" }, percent(row.mfu)),
      el("td", { class: "num" }, bytes(row.memory_bytes)),
      el("td", { class: "num", "data-chance": "" }, row.chance === null ? "–" : chance_shown(row.chance)),
      el("td", { class: "num" }, row.step_s > fastest ? percent(row.step_s / fastest - 1) : "–", row.by ? el("small", { class: "plan-by" }, row.by) : ""),
      el("td", {}, el("a", { href: `../modeler/?${modeler}`, "aria-label": `${name}, in the modeler` }, "modeler"), " ",
        el("a", { href: `../rank-map/?${map}`, "aria-label": `${name}, in the map` }, "map")));
  }
  return {
    element: whole,
    show(given, of) {
      [rows, found] = [given, of];
      if (ticked.size) onTicked([]);
      ticked = new Set();
      draw();
    },
  };
}
