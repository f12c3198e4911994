// What a GPU sends, on which links, and the bandwidth they would need: section(found, at, width).

import { sum } from "../engine/runtime.js";
import { el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { ringBytes } from "./modeler_counts.js";
import { LEVELS, axisLabel, hiddenOf, hueOf } from "./modeler_model.js";
import { roofline } from "./modeler_roofline.js";
import { barCell, note, num, swatch, table } from "./modeler_table.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";

/** Bytes by communicator and level, and every kind of call. */
export function trafficSection(found, at) {
  const { step } = found;
  if (!step.communication.length) return [note("One GPU alone sends nothing.")];
  const groups = transfersOf(found);
  const most = Math.max(...groups.map((one) => one.bytes));
  const sums = groups.map((one) => {
    const key = `${one.axis}:${one.level}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, swatch(hueOf(one.axis)), axisLabel(one.axis)),
      el("td", {}, LEVELS[one.level]),
      barCell([[hueOf(one.axis), one.bytes / most]]),
      num(value(bytes(one.bytes), `transfer:${key}`, at)),
      num(value(seconds(one.time_s), `taking:${key}`, at)),
      num(value(seconds(one.exposed_s), `waiting:${key}`, at)),
    );
  });
  const total = sum(groups.map((one) => one.bytes));
  sums.push(
    el(
      "tr",
      { class: "modeler-total" },
      el("th", { scope: "row" }, "all"),
      el("td"),
      el("td", { class: "modeler-effect" }),
      num(value(bytes(total), "sent", at)),
      el("td"),
      num(value(seconds(sum(groups.map((one) => one.exposed_s))), "exposed", at)),
    ),
  );
  return [
    table("Bytes of the step by communicator", ["group", "link", "~share", "#sent", "#time", "#exposed"], sums),
    el(
      "details",
      { class: "modeler-more modeler-calls" },
      el("summary", {}, "Every kind of call"),
      callsTable(found, at),
    ),
  ];
}

function callsTable({ step: { communication } }, at) {
  const rows = communication.map((row, index) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, axisLabel(row.axis)),
      num(value(plainNumber(row.size), `size:${index}`, at)),
      el("td", {}, `${row.purpose}, ${row.collective}`),
      el("td", {}, LEVELS[row.level]),
      num(value(plainNumber(row.calls), `calls:${index}`, at)),
      num(value(bytes(row.buffer_bytes), `buffer:${index}`, at)),
      num(value(bytes(row.sent_bytes), `sent:${index}`, at)),
      num(value(seconds(row.time_s), `row:${index}`, at)),
      num(value(seconds(row.exposed_s), `waited:${index}`, at)),
      el("td", { class: "modeler-rule" }, row.rule),
    ),
  );
  return table(
    "Communication of the step, per kind of call",
    ["group", "#GPUs", "what", "link", "#calls", "#buffer", "#sent", "#time", "#exposed", "hidden behind"],
    rows,
  );
}

export function linksSection(found, at, width) {
  const { levels, gradient_buckets: buckets } = found.step;
  if (!levels.length) return [note("No link is used.")];
  const rows = levels.map((load) => {
    const [mark, said] = verdictOf(load, found);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, LEVELS[load.level]),
      num(value(bytes(load.port_bytes), `load:${load.level}`, at)),
      num(value(quantity(load.needed_bandwidth_bytes_per_s, "B/s"), `needed:${load.level}`, at)),
      num(
        value(quantity(load.bandwidth_bytes_per_s, "B/s"), `bandwidth:${load.level}`, at),
        el("span", { class: mark }, ` ${said}`),
      ),
      num(value(quantity(load.ccr, "FLOP/B"), `ccr:${load.level}`, at)),
      num(value(quantity(load.ridge, "FLOP/B"), `ridge:${load.level}`, at)),
      num(
        value(percent(load.exposed_s / found.step.step_time_s), `waits:${load.level}`, at),
      ),
      num(value(percent(load.efficiency_with_overlap), `attainable:${load.level}`, at)),
      num(value(percent(load.efficiency_without_overlap), `attainable:${load.level}`, at)),
    );
  });
  return [
    table(
      "Links",
      [
        "link",
        "#bytes",
        "#needed at least",
        "#bandwidth",
        "#work per byte",
        "#ridge",
        "#exposed",
        "#attainable",
        "#no overlap",
      ],
      rows,
    ),
    note(
      "Needed at least: with less bandwidth per GPU per direction, the link limits the step even if everything overlaps. A faster link doesn't hide everything: the GPU still waits for communication that can't overlap, which counts in the exposed share of the step. Attainable: the share of the computing rate that the link allows, with perfect overlap and with none.",
    ),
    el("div", { class: "modeler-drawing" }, roofline(levels, Math.min(width, 720), LEVELS)),
    buckets && bucketNote(buckets, at),
    ...buffersPart(found, at),
  ];
}

const MUCH = 0.02; // of the step: less is not worth mentioning

// Whether a link's bandwidth is sufficient, which does not tell what waits for it.
function verdictOf(load, { step }) {
  if (load.bandwidth_bytes_per_s < load.needed_bandwidth_bytes_per_s) return ["modeler-bad", "✕ too slow"];
  return load.exposed_s > MUCH * step.step_time_s ? [null, "wide enough"] : ["modeler-good", "✓ enough"];
}

function bucketNote(found, at) {
  const many = found.best_buckets >= 1024 ? " or more" : "";
  return note(
    `Gradients of the ${axisLabel(found.axis)} groups go in `,
    value(plainNumber(found.buckets), "buckets", at),
    " buckets and take longer than the backward pass by ",
    value(seconds(found.exposed_s), "buckets", at),
    "; the best number of buckets, ",
    value(`${plainNumber(found.best_buckets)}${many}`, "bestbuckets", at),
    ", leaves ",
    value(seconds(found.best_exposed_s), "bestbuckets", at),
    ".",
  );
}

// The effect of a second buffer; `found.other` is the step with it, or without it, if the shown step has it.
function buffersPart(found, at) {
  const { setup } = found;
  const rings = setup.parallel.cp > 1 && setup.context_exchange === "p2p";
  const gathers = setup.gathers > 0 && setup.dense_shards > 1;
  return [
    rings && buffersTable(found, at, "cp", "ring of keys and values (CP)"),
    rings && !setup.shape.latent
      ? note("Two buffers of keys and values take ", value(bytes(ringBytes(setup)), "keys", at), " of a GPU's memory.")
      : null,
    gathers && buffersTable(found, at, "dp", "gathered weights and reduced gradients (DP, ZeRO-3)"),
  ].filter(Boolean);
}

function buffersTable(found, at, axis, title) {
  const here = [found, at];
  const there = [found.other, "o"];
  const [twice, once] = found.setup.double_buffering ? [here, there] : [there, here];
  const rows = [
    ["two buffers: the next arrives while the GPU computes on one", twice],
    ["one buffer: the GPU waits for it", once],
  ].flatMap(([name, [one, of]]) => {
    if (!one) return [];
    const exposed = one.step.exposed_s[axis];
    const hidden = hiddenOf(one).find((part) => part.axis === axis)?.seconds ?? 0;
    const total = exposed + hidden || 1;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      barCell([
        ["exposed", exposed / total],
        ["hidden", hidden / total],
      ]),
      num(value(seconds(exposed), `exposed:${axis}`, of)),
      num(value(seconds(hidden), `hidden:${axis}`, of)),
      num(value(seconds(one.step.step_time_s), "step", of)),
    );
  });
  return table("With and without double buffering", [title, "~share", "#exposed", "#hidden", "#step"], rows);
}

/** Bytes and seconds by communicator and level of link. */
export function transfersOf({ step }) {
  const found = new Map();
  for (const row of step.communication) {
    const key = `${row.axis} ${row.level}`;
    const kept = found.get(key) ?? {
      key,
      axis: row.axis,
      level: row.level,
      size: row.size,
      calls: 0,
      bytes: 0,
      time_s: 0,
      exposed_s: 0,
    };
    kept.calls += row.calls;
    kept.bytes += row.sent_bytes;
    kept.time_s += row.time_s;
    kept.exposed_s += row.exposed_s;
    found.set(key, kept);
  }
  return [...found.values()].sort((one, other) => other.bytes - one.bytes);
}
