// The parts of the step's time: the first section, drawn with the answer.

import { button, el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { breakdown } from "./modeler_bars.js";
import { hiddenOf, kindsOf, partsOf } from "./modeler_model.js";
import { labelOf } from "./modeler_options.js";
import { note, num, swatch, table } from "./modeler_table.js";
import { percent, plainNumber, seconds } from "./quantities.js";

/**
 * The parts of the step's time; `all` are the configurations, `at` the selected one, and `choose`
 * selects the other one.
 */
export function timeSection(all, at, width, choose) {
  const found = all[at];
  const { step, published } = found;
  const hidden = new Map(hiddenOf(found).map((part) => [part.axis, part]));
  const row = ({ key, axis, label, role, seconds: s }) => {
    const behind = hidden.get(axis);
    hidden.delete(axis);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, swatch(role), label),
      num(value(seconds(s), key.replace("exposed-", "exposed:"), at)),
      num(s ? value(percent(s / step.step_time_s), `share:${key}`, at) : "–"),
      num(behind ? value(seconds(behind.seconds), `hidden:${axis}`, at) : ""),
    );
  };
  const kind = ({ key, label, seconds: s }) =>
    el(
      "tr",
      { class: "modeler-kind" },
      el("th", { scope: "row" }, label),
      num(value(seconds(s), key, at)),
      num(value(percent(s / step.step_time_s), `share:${key}`, at)),
      num(""),
    );
  const rows = partsOf(found).flatMap((part) => (part.key === "compute" ? [row(part), ...kindsOf(found).map(kind)] : [row(part)]));
  for (const { axis, role } of [...hidden.values()])
    rows.push(row({ axis, role, key: `exposed-${axis}`, label: `exposed ${axis.toUpperCase()}`, seconds: 0 }));
  rows.push(
    el(
      "tr",
      { class: "modeler-total" },
      el("th", { scope: "row" }, "step"),
      num(value(seconds(step.step_time_s), "step", at)),
      num("100%"),
      num(""),
    ),
  );
  return [
    breakdown(all, width),
    all.length > 1
      ? el(
          "p",
          { class: "modeler-of" },
          `Configuration ${"AB"[at]}, here and below `,
          button(`Show ${"BA"[at]} instead`, () => choose(1 - at)),
        )
      : null,
    note(
      `A GPU of pipeline rank ${step.pipeline_rank}, the busiest. The thin bar is communication that runs behind computing.`,
    ),
    table("Where the time goes", ["part", "#time", "#share", "#hidden"], rows),
    published && publishedNote(published, at),
  ];
}

function publishedNote({ assumed, ...published }, at) {
  const said = [
    ["step_time_s", seconds, " a step"],
    ["tokens_per_s_per_gpu", plainNumber, " tokens/s per GPU"],
    ["model_flops_utilisation", percent, " MFU"],
    ["hardware_flops_utilisation", percent, " HFU"],
  ].filter(([key]) => published[key]);
  const words = said.flatMap(([key, format, unit], index) => [
    index ? ", " : "Published for this run: ",
    value(format(published[key]), `published:${key}`, at),
    unit,
  ]);
  const inputs = assumed.map(labelOf).join(", ");
  return note(words, words.length ? ". " : "", `Assumed, because the run doesn't say: ${inputs}.`);
}
