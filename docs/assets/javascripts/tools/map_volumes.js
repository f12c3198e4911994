// The messages of a layout's groups in a training step: collective, count, bytes. Loaded
// when a reader comes near them; the numbers are the modeler's.

import { sum } from "../engine/runtime.js";
import { catalog } from "../catalog.js";
import { el, selectField } from "./dom.js";
import { LEVELS, axisLabel, evaluate } from "./modeler_model.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { bytes, plainNumber, quantity } from "./quantities.js";

const ORDER = ["tp", "etp", "cp", "ep", "pp", "dp", "dp-cp", "edp", "embedding"];
const COLUMNS = [
  ["Groups of", ""], ["GPUs", "num"], ["What", ""], ["Collective", ""], ["How often", ""],
  ["Buffer", "num"], ["Sent per step", "num"], ["Link", ""],
];

/** Returns { element, update(query) }; `query` opens the layout in the modeler. */
export function makeVolumes() {
  const schema = schemaOf(catalog);
  let [query, chosen] = ["", ""];
  const { box, select } = selectField("Model", {
    name: "volumes-model",
    value: "",
    options: Object.entries(catalog.models).map(([name, { title }]) => [name, title]),
    onChange: (name) => {
      chosen = name;
      show();
    },
  });
  box.classList.add("map-model");
  const said = el("p", { class: "map-note", "aria-live": "polite" });
  const body = el("tbody");
  const table = el(
    "table",
    { class: "tool-table map-volumes" },
    el("caption", { class: "tool-live" }, "What each group sends in a training step"),
    el("thead", {}, el("tr", {}, COLUMNS.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text)))),
    body,
  );
  const scroll = el("div", { class: "tool-scroll", tabindex: 0, role: "region", "aria-label": "Table of messages" }, table);

  function show() {
    const { a } = fromQuery(schema, catalog, query);
    const found = evaluate(catalog, chosen ? { ...a, model: chosen } : a);
    select.value = found.state.model;
    scroll.hidden = Boolean(found.error);
    if (found.error) {
      said.textContent = `This model can't be laid out like this: ${found.error.message}.`;
      return;
    }
    const { step, setup } = found;
    said.textContent =
      `A GPU of pipeline rank ${step.pipeline_rank}, which works longest: ${plainNumber(setup.microbatches)} ` +
      `microbatches of ${quantity(setup.microbatch_size * setup.sequence, "token", "unit")} a step, ZeRO ${setup.zero_stage}. ` +
      `It sends ${sentBy(step.communication)}. The buffer is the largest of one call on a rank.`;
    const rows = [...step.communication].sort((one, other) => ORDER.indexOf(one.axis) - ORDER.indexOf(other.axis));
    body.replaceChildren(...rows.map((row) => lineOf(row, setup)));
    if (!rows.length) said.textContent = "One GPU alone sends nothing.";
  }
  return {
    element: el("div", {}, box, said, scroll),
    update(now) {
      query = now;
      show();
    },
  };
}

// The bytes of a step on each kind of link, fastest first.
const sentBy = (rows) =>
  Object.keys(LEVELS)
    .map((level) => [level, sum(rows.map((row) => (row.level === level ? row.sent_bytes : 0)))])
    .filter(([, sent]) => sent)
    .map(([level, sent]) => `${bytes(sent)} ${LEVELS[level]}`)
    .join(" and ");

const HUES = { embedding: "dp" };

function lineOf(row, setup) {
  const cells = [
    ["num", plainNumber(row.size)],
    ["", row.purpose],
    ["", row.collective],
    ["", oftenOf(row, setup)],
    ["num", bytes(row.buffer_bytes)],
    ["num", bytes(row.sent_bytes)],
    ["", LEVELS[row.level]],
  ];
  const name = el("span", { class: `map-tag map-label map-hue-${HUES[row.axis] ?? row.axis}` }, axisLabel(row.axis));
  return el("tr", {}, el("th", { scope: "row" }, name), cells.map(([kind, text]) => el("td", { class: kind || null }, text)));
}

function oftenOf({ when, calls }, { microbatches_of_stage }) {
  if (when === "microbatch") return `${plainNumber(calls / microbatches_of_stage)} × every microbatch`;
  return `${plainNumber(calls)} × at the ${when} of the step`;
}
