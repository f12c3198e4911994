// The sections below the first, each made from what the engine found: section(found, at, width).

import { el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { inkedSwatch } from "./modeler_inks.js";
import { alikeRanks, memoryBars, nameOf, shownGroups } from "./modeler_more_bars.js";
import { operationsOf } from "./modeler_counts.js";
import { labQuery } from "./modeler_lab.js";
import { PARTS, fullestOf } from "./modeler_model.js";
import { note, num, swatch, table } from "./modeler_table.js";
import { kindsOf, lanesOf, timelinePicture } from "./modeler_timeline.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { sum } from "../engine/runtime.js";
import { CONVENTIONS } from "../models/step/compute.js";
import { schedule_title } from "../models/pipeline/schedules.js";
import { carried_out } from "../models/step/step.js";
import { stages_of } from "../scenarios/tools/page_answers.js";

// The trace of the pipeline in the step, and the seconds before and after it.
function timelineOf({ setup, job }) {
  const times = stages_of(job);
  const [trace, before_s, after_s] = carried_out(setup, times);
  return { times, trace, before_s, after_s };
}

// Opens the schedule lab with the time of every stage.
function toLab({ setup }, times) {
  const job = new URLSearchParams(document.querySelector(".job-line")?.dataset.job ?? "");
  const query = labQuery(setup, times, job);
  return query && el("p", {}, el("a", { href: `../schedules/?${query}`, "data-lab": "" }, "Open in the schedule lab with these times"));
}

/** The pipeline: efficiency and both bubble measures, of the schedule and of this step; timeline. */
export function pipelineSection(found, at, width) {
  const { pipeline, step, setup } = found;
  const drawn = timelineOf(found);
  const lanes = lanesOf(setup.order).length;
  const row = (name, schedule, here) =>
    el("tr", {}, el("th", { scope: "row", class: "modeler-wide" }, name), num(schedule), num(here));
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
    pipeline.stages > 1 ? whyNot(found, at) : null,
    el(
      "p",
      { class: "modeler-legend" },
      kindsOf(drawn.trace).map(([role, letter, name]) => el("span", {}, swatch(role), `${letter} ${name}`)),
      el("span", {}, swatch("idle"), "idle"),
      drawn.before_s + drawn.after_s > 0 ? el("span", {}, swatch("dp"), "DP before and after") : null,
    ),
    el("div", { class: "modeler-drawing" }, timelinePicture(drawn, width)),
    toLab(found, drawn.times),
    note(
      `${schedule_title(setup.schedule, pipeline.chunks)}: ${plainNumber(pipeline.stages)} ${pipeline.stages === 1 ? "rank" : "ranks"} · ${plainNumber(pipeline.microbatches)} microbatches · ${plainNumber(pipeline.chunks)} ${pipeline.chunks === 1 ? "chunk" : "chunks"} each; one global batch is `,
      value(quantity(setup.global_batch, "sequence", "unit"), "batch", at),
      " or ",
      value(quantity(setup.tokens_per_step, "token", "unit"), "batch", at),
      "; a replica carries out ",
      value(plainNumber(operationsOf(setup).total), "operations", at),
      " forward and backward passes per step; the numbers in the picture are microbatches.",
      lanes < pipeline.stages ? ` Drawn: the first and last ${lanes / 2} ranks.` : "",
    ),
    ...chunksPart(found, at),
  ];
}

// Explains why the idle share of the step differs from that of its schedule.
function whyNot({ step }, at) {
  const waits = sum(Object.values(step.exposed_s));
  return note(
    "The schedule alone has equal stages and messages that take no time, as in the closed form. This step counts the idle time of the busiest GPU, which has the slowest stage",
    waits > 0
      ? [", divided by a time that includes ", value(seconds(waits), "exposed", at), " of exposed communication."]
      : ".",
  );
}

// The step with other numbers of chunks; `found.chunked` has [chunks, found, its name as a variant].
function chunksPart({ chunked, ...now }, at) {
  if (!chunked?.length) return [];
  const mine = [now.pipeline.chunks, now, at];
  const all = [...chunked, mine].sort(([a], [b]) => a - b);
  const fitting = all.filter(([, { memory }]) => memory.fits !== false);
  const least = (one, other) => (other[1].step.step_time_s < one[1].step.step_time_s ? other : one);
  const best = fitting.length ? fitting.reduce(least) : null;
  const rows = all.map(([count, found, of]) =>
    el(
      "tr",
      { class: best?.[0] === count ? "modeler-total" : null },
      el("th", { scope: "row" }, count === mine[0] ? `${count}, now` : String(count)),
      num(value(percent(found.pipeline.bubble_fraction), "fraction", of)),
      num(value(seconds(found.step.exposed_s.pp), "exposed:pp", of)),
      num(value(seconds(found.step.step_time_s), "step", of)),
      num(
        value(bytes(fullestOf(found).total_bytes), "fullest", of),
        found.memory.fits === false ? " ✕ too much" : "",
      ),
    ),
  );
  const words = best
    ? [
        `Chunks per rank: the best number that fits is ${best[0]}, a step of `,
        value(seconds(best[1].step.step_time_s), "step", best[2]),
        best[0] === mine[0] ? ", as now. " : ". ",
      ]
    : ["Chunks per rank: no number that we tried fits in memory. "];
  return [
    note(words, "One chunk is 1F1B; more chunks are interleaved 1F1B, which idles less but needs more messages and activations."),
    el(
      "details",
      { class: "modeler-more modeler-calls" },
      el("summary", {}, "Every number of chunks that was tried"),
      table(
        "Chunks per rank, interleaved 1F1B",
        ["chunks", "#bubble_fraction of the schedule", "#exposed PP", "#step", "#fullest GPU"],
        rows,
      ),
    ),
  ];
}

/** Memory of each pipeline rank by part. */
export function memorySection(found, at, width) {
  const { memory } = found;
  const alike = alikeRanks(memory);
  const groups = shownGroups(alike, 8);
  const parts = PARTS.filter(([name]) => memory.ranks.some((rank) => rank.bytes[name]));
  const sums = [["allocated", "allocated_bytes"], ["reserved", "reserved_bytes"], ["outside", "outside_bytes"], ["total", "total_bytes"]];
  const rows = groups.map((group) => {
    const { rank } = group;
    const of = rank.pipeline_rank;
    return el(
      "tr",
      { class: group.fullest ? "modeler-total" : null },
      el("th", { scope: "row" }, nameOf(group)),
      num(value(plainNumber(rank.layers), `layers:${of}`, at)),
      num(value(quantity(rank.parameters, "param", "si"), `parameters:${of}`, at)),
      num(value(plainNumber(rank.in_flight), `inflight:${of}`, at)),
      parts.map(([name]) => num(value(bytes(rank.bytes[name]), `memory:${of}:${name}`, at))),
      num(value(bytes(rank.total_bytes), `memory:${of}`, at)),
    );
  });
  const printed = groups.map((group) =>
    el(
      "tr",
      { class: group.fullest ? "modeler-total" : null },
      el("th", { scope: "row" }, nameOf(group)),
      sums.map(([, name]) => num(value(bytes(group.rank[name]), `memory:${group.rank.pipeline_rank}`, at))),
    ),
  );
  return [
    el("div", { class: "modeler-drawing" }, memoryBars(found, width)),
    el(
      "p",
      { class: "modeler-legend" },
      parts.map(([, name, role]) => el("span", {}, inkedSwatch(role), name)),
    ),
    table(
      "Memory of a GPU of each pipeline rank",
      ["rank", "#layers", "#parameters", "#in flight", ...parts.map(([, name]) => `#${name}`), "#total"],
      rows,
    ),
    table("The same in PyTorch's units", ["rank", ...sums.map(([name]) => `#${name}`)], printed),
    note(
      "Pipeline ranks with equal memory share a line. PyTorch prints allocated and reserved memory; the contexts of CUDA and NCCL are outside its allocator.",
      groups.length < alike.length ? " Some ranks are left out, but never the fullest; the CSV has all of them." : "",
    ),
  ];
}

/** Utilization by every named convention. */
export function utilisationSection(found, at) {
  const rows = [...CONVENTIONS.values()]
    .filter(({ name }) => found.step.utilisation[name] !== null)
    .map(({ name, label, hardware }) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, hardware ? name : `MFU, ${name}`),
        el("td", {}, label),
        num(value(percent(found.step.utilisation[name]), `mfu:${name}`, at)),
      ),
    );
  return [
    table("Utilization by convention", ["convention", "what counts per token", "#of the dense peak"], rows),
    updateNote(found, at),
    note(
      `With this configuration's recomputation, HFU is ${percent(found.step.hardware_flops_utilisation)}, attention whole; a line named hfu is for the recomputation in its name.`,
    ),
  ];
}

// Matmuls that an optimizer runs after the step.
function updateNote({ step }, at) {
  const { orthogonalising_s: added_s, step_and_orthogonalising_s: whole_s } = step;
  if (!added_s) return null;
  return note(
    "Muon's matmuls add to the step: ",
    value(seconds(added_s), "update", at),
    " on the GPU with most of them, ",
    value(percent(added_s / whole_s), "updateshare", at),
    " of both.",
  );
}
