// The sections below the first, each made from what the engine found: section(found, at, width).

import { el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { memoryBars, ringBars, shownRanks, transfers } from "./modeler_more_bars.js";
import { LEVELS, PARTS, axisLabel, ringBytes } from "./modeler_model.js";
import { roofline } from "./modeler_roofline.js";
import { note, num, swatch, table } from "./modeler_table.js";
import { kindsOf, lanesOf, timelinePicture } from "./modeler_timeline.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { timeline } from "../engine/training.js";
import { CONVENTIONS } from "../engine/transformer.js";

/** The pipeline: efficiency and both bubble measures, of the schedule and of this step; timeline. */
export function pipelineSection(found, at, width) {
  const { pipeline, step, setup } = found;
  const drawn = timeline(setup);
  const lanes = lanesOf(setup.order).length;
  const row = (name, schedule, here) => el("tr", {}, el("th", { scope: "row" }, name), num(schedule), num(here));
  return [
    table(
      "Pipeline",
      ["measure", "#schedule, equal stages", "#this step"],
      [
        row("pipeline efficiency", value(percent(pipeline.efficiency), "efficiency", at), "–"),
        row(
          "bubble_fraction (of the wall time)",
          value(percent(pipeline.bubble_fraction), "fraction", at),
          value(percent(step.bubble_fraction), "bubble", at),
        ),
        row(
          "bubble_overhead (over computing)",
          value(percent(pipeline.bubble_overhead), "overhead", at),
          value(percent(step.bubble_overhead), "bubble", at),
        ),
      ],
    ),
    el(
      "p",
      { class: "modeler-legend" },
      kindsOf(drawn.trace).map(([role, letter, name]) => el("span", {}, swatch(role), `${letter} ${name}`)),
      el("span", {}, swatch("idle"), "idle"),
      drawn.before_s + drawn.after_s > 0 ? el("span", {}, swatch("dp"), "DP before and after") : null,
    ),
    el("div", { class: "modeler-drawing" }, timelinePicture(drawn, width)),
    note(
      `${plainNumber(pipeline.stages)} ${pipeline.stages === 1 ? "rank" : "ranks"} · ${plainNumber(pipeline.microbatches)} microbatches · ${plainNumber(pipeline.chunks)} ${pipeline.chunks === 1 ? "chunk" : "chunks"} each; one global batch is `,
      value(quantity(setup.global_batch, "sequence", "unit"), "batch", at),
      ` or ${quantity(setup.tokens_per_step, "token", "unit")}.`,
      lanes < pipeline.stages ? ` Drawn: the first and last ${lanes / 2} ranks.` : "",
    ),
  ];
}

/** What a GPU sends, on which links, and what the links would need. */
export function trafficSection(found, at, width) {
  const { step } = found;
  if (!step.communication.length) return [note("One GPU alone sends nothing.")];
  const rows = step.communication.map((row, index) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, axisLabel(row.axis)),
      num(plainNumber(row.size)),
      el("td", {}, `${row.purpose}, ${row.collective}`),
      el("td", {}, LEVELS[row.level]),
      num(plainNumber(row.calls)),
      num(bytes(row.buffer_bytes)),
      num(value(bytes(row.sent_bytes), `sent:${index}`, at)),
      num(value(seconds(row.time_s), `row:${index}`, at)),
      num(value(seconds(row.exposed_s), `row:${index}`, at)),
      el("td", { class: "modeler-rule" }, row.rule),
    ),
  );
  return [
    transfers(found, width, LEVELS),
    table(
      "Communication of the step, per kind of call",
      ["group", "#GPUs", "what", "link", "#calls", "#buffer", "#sent", "#time", "#exposed", "what it hides behind"],
      rows,
    ),
  ];
}

export function linksSection(found, at, width) {
  const { levels, gradient_buckets: buckets } = found.step;
  if (!levels.length) return [note("No link is used.")];
  const rows = levels.map((load) => {
    const enough = load.bandwidth_bytes_per_s >= load.needed_bandwidth_bytes_per_s;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, LEVELS[load.level]),
      num(bytes(load.port_bytes)),
      num(quantity(load.bandwidth_bytes_per_s, "B/s")),
      num(
        el(
          "span",
          { class: enough ? "modeler-good" : "modeler-bad", role: "img", "aria-label": enough ? "enough" : "too slow" },
          enough ? "✓ " : "✕ ",
        ),
        value(quantity(load.needed_bandwidth_bytes_per_s, "B/s"), `needed:${load.level}`, at),
      ),
      num(value(quantity(load.ccr, "FLOP/B"), `ccr:${load.level}`, at)),
      num(value(quantity(load.ridge, "FLOP/B"), `ridge:${load.level}`, at)),
      num(value(percent(load.efficiency_with_overlap), `attainable:${load.level}`, at)),
      num(value(percent(load.efficiency_without_overlap), `attainable:${load.level}`, at)),
    );
  });
  return [
    table(
      "Links",
      [
        "link of a GPU",
        "#bytes per step",
        "#bandwidth",
        "#needed at least",
        "#work per byte",
        "#ridge point",
        "#attainable",
        "#without overlap",
      ],
      rows,
    ),
    note(
      "Needed at least: the bandwidth per GPU and direction below which the link sets the pace, however well sending and computing overlap; ✓ the link has it, ✕ it does not.",
    ),
    el("div", { class: "modeler-drawing" }, roofline(levels, Math.min(width, 720), LEVELS)),
    buckets && bucketNote(buckets, at),
    ...keysPart(found, at, width),
  ];
}

function bucketNote(found, at) {
  return note(
    `Gradients of the ${axisLabel(found.axis)} groups go in ${plainNumber(found.buckets)} buckets and stick out of backward by `,
    value(seconds(found.exposed_s), "buckets", at),
    `; the best number, ${found.best_buckets >= 1024 ? "at least " : ""}${plainNumber(found.best_buckets)}, leaves ${seconds(found.best_exposed_s)}.`,
  );
}

// The exchange of keys and values with and without a second buffer; `other` is the other one.
function keysPart({ setup, step, other }, at, width) {
  const sent = step.communication.filter(({ axis }) => axis === "cp");
  if (!sent.length || setup.context_exchange !== "p2p") return [];
  const total = sent.reduce((sum, row) => sum + row.time_s, 0);
  const [twice, once] = setup.double_buffering ? [step, other?.step] : [other?.step, step];
  const rows = [
    ["with double buffering", twice],
    ["without", once],
  ].filter(([, found]) => found);
  return [
    el(
      "div",
      { class: "modeler-drawing" },
      ringBars(
        rows.map(([name, found]) => [name, found.exposed_s.cp]),
        total,
        width,
      ),
    ),
    note(
      "Keys and values around the ring of context parallelism; two buffers for them take ",
      setup.shape.latent ? "room for two blocks" : value(quantity(ringBytes(setup), "B"), "keys", at),
      ".",
    ),
  ];
}

/** Memory of each pipeline rank by part. */
export function memorySection(found, at, width) {
  const { memory } = found;
  const ranks = shownRanks(memory.ranks, memory.fullest_rank);
  const parts = PARTS.filter(([name]) => memory.ranks.some((rank) => rank.bytes[name]));
  const giga = (size) => quantity(size / 1e9, "1", ".2f");
  const rows = ranks.map((rank) =>
    el(
      "tr",
      { class: rank.pipeline_rank === memory.fullest_rank ? "modeler-total" : null },
      el("th", { scope: "row" }, `rank ${rank.pipeline_rank}`),
      num(plainNumber(rank.layers)),
      num(quantity(rank.parameters, "param", "si")),
      num(plainNumber(rank.in_flight)),
      parts.map(([name]) => num(value(giga(rank.bytes[name]), `memory:${rank.pipeline_rank}:${name}`, at))),
      num(value(giga(rank.total_bytes), `memory:${rank.pipeline_rank}`, at)),
    ),
  );
  return [
    el("div", { class: "modeler-drawing" }, memoryBars(found, width)),
    el(
      "p",
      { class: "modeler-legend" },
      parts.map(([, name, role]) => el("span", {}, swatch(role, true), name)),
    ),
    table(
      "Memory of a GPU of each pipeline rank, GB",
      ["GB", "#layers", "#parameters", "#in flight", ...parts.map(([, name]) => `#${name}`), "#total"],
      rows,
    ),
    ranks.length < memory.ranks.length
      ? note(`${ranks.length} of ${memory.ranks.length} ranks, the fullest among them; the CSV has all.`)
      : null,
  ];
}

/** Utilisation by every named convention. */
export function utilisationSection(found, at) {
  const rows = [...CONVENTIONS]
    .filter(([name]) => found.step.utilisation[name] !== null)
    .map(([name, { label, hardware }]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, name),
        el("td", {}, hardware ? "HFU" : "MFU"),
        el("td", {}, label),
        num(value(percent(found.step.utilisation[name]), `mfu:${name}`, at)),
      ),
    );
  return [
    table("Utilisation by convention", ["convention", "kind", "what counts per token", "#of the dense peak"], rows),
    note(
      "HFU counts what is computed again, so those lines hold only where the recomputation is switched on that they are named after.",
    ),
  ];
}
