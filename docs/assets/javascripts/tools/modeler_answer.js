// The answer first: how long a step takes, how well the GPUs are used, whether it fits, what costs
// most; and two configurations side by side.

import { el } from "./dom.js";
import { COMPARED, bottleneckOf, fullestOf } from "./modeler_model.js";
import { bytes, change, percent, plainNumber, quantity, seconds } from "./quantities.js";

/** A number that opens how it is computed; `of` is the configuration, 0 or 1. */
export const value = (text, how, of = 0) =>
  el(
    "button",
    { type: "button", class: "fig-value modeler-value", "data-how": how, "data-of": of, "aria-haspopup": "dialog" },
    text,
  );

/** Four cards; with two configurations each card has both. */
export function answer(found) {
  const both = found.length > 1;
  const cards = [
    [
      "Step time",
      ({ step }, of) => [
        value(seconds(step.step_time_s), "step", of),
        el("small", {}, value(plainNumber(step.tokens_per_s_per_gpu), "throughput", of), " tokens/s per GPU"),
      ],
    ],
    [
      "MFU, 6nd + attention",
      ({ step, published }, of) => [
        value(percent(step.model_flops_utilisation), "mfu:6nd+attention", of),
        el(
          "small",
          {},
          published?.model_flops_utilisation
            ? `published ${percent(published.model_flops_utilisation)}`
            : `of the dense ${quantity(found[of].setup.cluster.peak_flops_per_s, "FLOP/s")}`,
        ),
      ],
    ],
    ["Memory of the fullest GPU", memoryAnswer],
    ["Costs most beside computing", costAnswer],
  ];
  return cards.map(([title, of]) =>
    el(
      "div",
      { class: "modeler-card" },
      el("div", { class: "modeler-name" }, title),
      found.map((one, index) =>
        el(
          "div",
          { class: "modeler-figure" },
          both ? el("b", { class: "modeler-which" }, "AB"[index]) : null,
          of(one, index),
        ),
      ),
    ),
  );
}

function memoryAnswer(found, of) {
  const { memory } = found;
  const fullest = fullestOf(found);
  const size = value(bytes(fullest.total_bytes), `memory:${fullest.pipeline_rank}`, of);
  if (memory.fits === null) return [size, el("small", {}, "no capacity known")];
  const room = value(bytes(Math.abs(memory.free_bytes)), "free", of);
  return [
    size,
    memory.fits
      ? el("small", { class: "modeler-good" }, "✓ fits: ", room, ` of ${bytes(memory.capacity_bytes)} free`)
      : el("small", { class: "modeler-bad" }, "✕ does not fit: ", room, ` over ${bytes(memory.capacity_bytes)}`),
  ];
}

function costAnswer(found, of) {
  const { key, label, seconds: s } = bottleneckOf(found);
  if (key === "compute")
    return [
      el("span", { class: "modeler-word" }, "nothing much"),
      el("small", {}, "computing is ", value(percent(s / found.step.step_time_s), "compute", of), " of the step"),
    ];
  const how = key.startsWith("exposed-") ? key.replace("-", ":") : key;
  return [value(percent(s / found.step.step_time_s), how, of), el("small", {}, `${label}, ${seconds(s)}`)];
}

/** The side-by-side table of two configurations. */
export function comparison([one, other]) {
  const format = (number, unit, spec) =>
    unit === "%" ? percent(number) : unit === "1" ? plainNumber(number, 4) : quantity(number, unit, spec);
  const rows = COMPARED.map(([name, unit, spec, of, better, how]) => {
    const number = (found, at) => (how ? value(format(of(found), unit, spec), how, at) : format(of(found), unit, spec));
    const [a, b] = [of(one), of(other)];
    const ratio = unit === "%" ? b - a : a ? b / a - 1 : 0;
    const moved = unit === "%" ? `${change(ratio).replace("%", "")} points` : change(ratio);
    const same = Math.abs(ratio) < 5e-4;
    const good = better * ratio > 0;
    const mark = same || !better ? "" : good ? "modeler-good" : "modeler-bad";
    const sign = mark && (good ? " ▲" : " ▼");
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", { class: "num" }, number(one, 0)),
      el("td", { class: "num" }, number(other, 1)),
      el("td", { class: `num ${mark}` }, same ? "same" : `${moved}${sign}`),
    );
  });
  return el(
    "div",
    { class: "tool-scroll", tabindex: "0", role: "group", "aria-label": "Two configurations side by side" },
    el(
      "table",
      { class: "tool-table" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "measure"),
          ["A", "B", "B against A"].map((name) => el("th", { scope: "col", class: "num" }, name)),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

/** One sentence for who does not see the page. */
export function spoken(found, index = null) {
  const name = index === null ? "" : `Configuration ${"AB"[index]}: `;
  if (found.error) return `${name}cannot be computed: ${found.error.message}`;
  const { step, memory } = found;
  const { key, label, seconds: s } = bottleneckOf(found);
  const fits =
    memory.fits === null
      ? ""
      : memory.fits
        ? `, fits with ${bytes(memory.free_bytes)} free`
        : `, does not fit by ${bytes(-memory.free_bytes)}`;
  const cost = key === "compute" ? "" : `, ${label} ${percent(s / step.step_time_s)}`;
  return `${name}step ${seconds(step.step_time_s)}, MFU ${percent(step.model_flops_utilisation)}${fits}${cost}.`.replaceAll(
    "\u00a0",
    " ",
  );
}
