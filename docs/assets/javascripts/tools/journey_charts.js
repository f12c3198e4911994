// The journey's charts for a reader's cluster: their data, bars and tables.

import { board_values, job_words, kinds_of_memory, layout_words, layouts_values, memory_values, model_size, parts_of_step } from "../scenarios/stories/journey_charts.js";
import { MFU_LABEL } from "../models/step/compute.js";
import { el } from "./dom.js";
import { plainNumber, quantity } from "./quantities.js";

const KINDS = ["series-1", "series-2", "series-3", "series-4", "series-5"];
const PARTS = ["forward", "exposed", "idle", "backward-weight", "neutral"];

// `label | model | sizes | options` as a job, with words for what became of it.
const writtenJob = ({ stepOf }, text) => {
  const [, model, sizes, options] = text.split("|").map((part) => part.trim());
  return labelled(stepOf(model, sizes, options ?? ""));
};
const labelled = (found) => ({ ...found, label: found.step ? job_words(found.step.setup) : "does not divide this cluster" });

const rungsTo = ({ step }, page) => Array.from({ length: page }, (_, at) => ({ page: at + 1, ...step(at + 1) }));

const bars = (jobs, roles, partsOf, written, rule = null) => ({
  rule, written,
  rows: jobs.map(({ label, step }) => ({ label, parts: step ? Object.entries(partsOf(step)).map(([name, size], at) => ({ name, size, role: roles[at] })) : [] })),
});

const inBytes = (size) => quantity(size, "B", "bytes");
const entries = (found) => (found instanceof Map ? Object.fromEntries(found) : found);

function intervals(steps) {
  const shares = steps.map(({ interval_s, step_time_s }) => interval_s.map((end) => end / step_time_s));
  const classes = [...new Set(steps.map(({ interval_of }) => interval_of))];
  return {
    predicted_low: Math.min(...shares.map(([low]) => low)), predicted_high: Math.max(...shares.map(([, high]) => high)),
    predicted_of: classes.length > 1 ? `${classes.slice(0, -1).join(", ")} and ${classes.at(-1)}` : classes[0],
  };
}

function memoryChart(jobs) {
  const steps = jobs.flatMap(({ step }) => step ?? []);
  if (!steps.length) return null;
  const values = entries(memory_values(steps));
  return { bars: bars(jobs, KINDS, (one) => entries(kinds_of_memory(one)), inBytes, { at: values.capacity, label: "the GPU has" }), values };
}

/** By chart name: { bars or table, values by name } on a cluster; null if nothing can be laid out. */
export const CHARTS = {
  "journey-fit": (found, { jobs }) => memoryChart(jobs.map((text) => writtenJob(found, text))),
  "journey-layouts"(found, { jobs }) {
    const shown = jobs.map((text) => writtenJob(found, text));
    const steps = shown.flatMap(({ step }) => step ?? []);
    // Values are numbered over all jobs, so a missing job would shift the others.
    const values = steps.length === shown.length ? { ...entries(layouts_values(steps)), ...intervals(steps) } : {};
    return steps.length ? { bars: bars(shown, PARTS, (one) => entries(parts_of_step(one)), (size) => quantity(size, "s", "time")), values } : null;
  },
  "journey-scoreboard"(found, { page }, catalog) {
    const rows = rungsTo(found, page).map(({ page: at, step, choices }) => {
      const { title } = catalog.models[choices.model] ?? { title: choices.model };
      if (!step) return [`${at}: ${title}`, "does not divide this cluster", ...Array(6).fill("–")];
      const time = Number.isNaN(step.low_s) ? "" : ` (${plainNumber(step.low_s, 2)}–${plainNumber(step.high_s, 2)})`;
      return [
        `${at}: ${model_size(title, step.parameters)} on ${step.gpus}`, layout_words(step.setup), inBytes(step.total_bytes),
        inBytes(step.near_bytes), inBytes(step.far_bytes), `${plainNumber(step.step_time_s)}${time}`,
        quantity(step.tokens_per_second, "1", "si"), quantity(step.mfu, "1", ".0%"),
      ];
    });
    const { step, choices } = found.step(page);
    const values = step ? { ...entries(board_values(step)), layout: layout_words(step.setup), model: catalog.models[choices.model]?.title ?? choices.model } : {};
    return { table: { headings: ["page: job", "layout", "memory", "in the node", "network", "step (s)", "tokens/s", MFU_LABEL], rows }, values };
  },
};

/** A chart as an element. */
export const drawn = ({ bars: shown, table }) => (shown ? drawnBars(shown) : drawnTable(table));

function drawnTable({ headings, rows }) {
  const cell = (text, at) => el("td", { class: at > 1 && at !== 5 ? "num" : "short" }, text);
  return el("div", { class: "fig-scroll fig-yours", tabindex: 0, role: "group", "aria-label": "On your cluster, table" },
    el("table", { class: "fig-table" },
      el("thead", {}, el("tr", {}, headings.map((text, at) => el("th", { scope: "col", class: at > 1 && at !== 5 ? "num" : null }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

function drawnBars({ rows, rule, written }) {
  const total = ({ parts }) => parts.reduce((sum, { size }) => sum + size, 0);
  const widest = Math.max(rule?.at ?? 0, ...rows.map(total));
  const share = (size) => `${(100 * size) / widest}%`;
  const names = new Map(rows.flatMap(({ parts }) => parts.filter(({ size }) => size > 0).map(({ name, role }) => [name, role])));
  const part = ({ name, size, role }) => {
    const box = el("span", { title: `${name}: ${written(size)}` });
    box.style.width = share(size);
    box.style.background = `var(--fig-${role})`;
    return box;
  };
  const line = () => {
    const mark = el("i", {});
    mark.style.insetInlineStart = share(rule.at);
    return mark;
  };
  const key = [...names].map(([name, role]) => {
    const box = el("span", {});
    box.style.background = `var(--fig-${role})`;
    return el("span", {}, box, ` ${name}`);
  });
  const said = rows.map((row) => `${row.label}: ${row.parts.length ? written(total(row)) : "–"}`).join("; ");
  return el("div", { class: "fig-yours", role: "img", "aria-label": `On your cluster. ${said}.${rule ? ` ${rule.label} ${written(rule.at)}.` : ""}` },
    el("p", { class: "yours-key" }, key, rule ? el("span", {}, el("i", {}), ` ${rule.label} ${written(rule.at)}`) : []),
    rows.map((row) => el("div", { class: "yours-bar" },
      el("span", {}, row.label),
      el("span", { class: "yours-track" }, row.parts.filter(({ size }) => size > 0).map(part), rule ? line() : []),
      el("b", {}, row.parts.length ? written(total(row)) : "–"))));
}
