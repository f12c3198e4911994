// Lines behind what a GPU sends: calls, buffers, groups, times, and the load of each link. Pure.

import { stage_traffic } from "../models/step/data_traffic.js";
import { port_bytes } from "../models/step/level_loads.js";
import { group_link } from "../models/step/step_links.js";
import { family_of as familyOf } from "../models/step/step_rows.js";
import { PASSES } from "../models/step/step_traffic.js";
import { workedLine } from "../engine/worked.js";
import { ringArguments } from "./modeler_counts.js";
import { passingOf } from "./modeler_how_stages.js";
import { tunedBucket } from "./modeler_how_tuned.js";
import { axisLabel } from "./modeler_model.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { plainLine, sumLine } from "./worked.js";

const rowOf = ({ step }, index) => step.communication[Number(index)];
const nameOf = ({ purpose, collective }) => `${purpose}, ${collective}`;

export function rowSums({ step }, axis, of, title) {
  const rows = step.communication.filter((row) => familyOf(row.axis) === axis && of(row) > 0);
  return [
    sumLine(
      title,
      rows.map((row) => [`${axisLabel(row.axis)} ${row.purpose} (${row.collective})`, of(row)]),
      rows.reduce((sum, row) => sum + of(row), 0),
      seconds,
    ),
  ];
}

const sentLine = (row) =>
  plainLine(
    nameOf(row),
    "calls · bytes sent in one",
    `${plainNumber(row.calls)} · ${bytes(row.call_bytes)} = ${bytes(row.sent_bytes)}`,
  );

function sentLines(row) {
  const passes = PASSES.get(row.collective);
  const one = passes
    ? plainLine(
        `One call: a rank sends ${passes === 2 ? "twice " : ""}all of the buffer but one part in ${plainNumber(row.size)}.`,
        passes === 2 ? "2 · (n − 1) / n · buffer" : "(n − 1) / n · buffer",
        `${passes === 2 ? "2 · " : ""}${plainNumber(row.size - 1)} / ${plainNumber(row.size)} · ${bytes(row.buffer_bytes)} = ${bytes(row.call_bytes)}`,
      )
    : plainLine("One send passes on the whole buffer.", "buffer", bytes(row.call_bytes));
  return [one, sentLine(row)];
}

// The number of ranks in a group.
function sizeLines({ setup: { parallel } }, { axis, size }) {
  const { tp, cp, pp, ep, etp, dp, world_size } = parallel;
  const quotient = (name, ...divided) =>
    plainLine(
      `${axisLabel(axis)}: the GPUs divided by the other axes.`,
      `GPUs / (${name})`,
      `${plainNumber(world_size)} / (${divided.map((value) => plainNumber(value)).join(" · ")}) = ${plainNumber(size)}`,
    );
  if (axis === "dp") return [quotient("TP · CP · PP", tp, cp, pp)];
  if (axis === "edp") return [quotient("ETP · EP · PP", etp, ep, pp)];
  if (axis === "dp-cp")
    return [
      plainLine(
        "Ranks that hold the same weights: replicas, and the parts of a sequence.",
        "DP · CP",
        `${plainNumber(dp)} · ${plainNumber(cp)} = ${plainNumber(size)}`,
      ),
    ];
  if (axis === "embedding")
    return [plainLine("The first and the last stage, which hold the tied table.", "", plainNumber(size))];
  return [plainLine("A choice of the layout.", axisLabel(axis), plainNumber(size))];
}

// The calls of those stages of the rank that a row adds up.
function entriesOf({ setup, step }, row) {
  return setup.placement.stages_of_rank(step.pipeline_rank).flatMap((stage) =>
    stage_traffic(setup, stage).filter((entry) => {
      const when = entry.per_microbatch ? "microbatch" : entry.phase;
      return (
        nameOf(entry) === nameOf(row) &&
        entry.axis === row.axis &&
        when === row.when &&
        entry.buffer_bytes === row.buffer_bytes
      );
    }),
  );
}

function callsLines(found, row) {
  const entries = entriesOf(found, row);
  const each = entries.reduce((sum, entry) => sum + entry.calls, 0);
  const phases = [...new Set(entries.map(({ phase }) => phase))].join(" and ");
  if (row.when !== "microbatch")
    return [plainLine(`Once per step, at its ${row.when}: buckets of this rank.`, "buckets", plainNumber(row.calls))];
  return [
    plainLine(
      `Calls in the ${phases} of one microbatch on this rank, for every microbatch that passes it.`,
      "calls of a microbatch · microbatches",
      `${plainNumber(each)} · ${plainNumber(passingOf(found.setup))} = ${plainNumber(row.calls)}`,
    ),
  ];
}

const ACTIVATION = 2; // bytes of an element

function bufferLines(found, notes, row) {
  const { setup } = found;
  const { tokens, split_tokens, shape, recipe, parallel } = setup;
  const times = (doc, words, ...factors) => [
    plainLine(
      doc,
      words,
      `${factors.map((value) => plainNumber(value)).join(" · ")} · ${bytes(row.buffer_bytes / factors.reduce((a, b) => a * b))} = ${bytes(row.buffer_bytes)}`,
    ),
  ];
  const states = { gradients: recipe.gradient_bytes, weights: recipe.weight_bytes }[row.purpose];
  if (states) {
    const [{ calls }] = entriesOf(found, row);
    if (row.purpose === "weights" && setup.lora_rank !== null) return [tunedBucket(found, row, calls)];
    return [
      plainLine(
        `The ${row.purpose} that a stage sends in this group, in equal buckets.`,
        `parameters · bytes of each / buckets`,
        `${quantity((row.buffer_bytes * calls) / states, "param", "si")} · ${bytes(states)} / ${plainNumber(calls)} = ${bytes(row.buffer_bytes)}`,
      ),
    ];
  }
  if (row.axis === "embedding")
    return [plainLine("Gradients of the table on one tensor-parallel rank.", "table", bytes(row.buffer_bytes))];
  if (row.axis === "pp")
    return [
      workedLine(notes, "pipeline_boundary_bytes", {
        microbatch_size: 1,
        sequence_length: split_tokens,
        hidden: shape.hidden,
        bytes_per_element: ACTIVATION,
      }),
    ];
  if (row.axis === "ep" || row.axis === "etp") {
    const copies = [split_tokens, shape.experts.top_k, shape.hidden];
    const within = row.axis === "etp";
    const words = "tokens of a rank · experts per token · width · bytes";
    return within
      ? times("Tokens of all ranks of an expert.", `ETP · ${words}`, parallel.etp, ...copies)
      : times("Every token once for each of its experts.", words, ...copies);
  }
  const whole = row.axis === "cp" && row.collective !== "send" ? tokens * parallel.cp : tokens;
  const width = row.buffer_bytes / whole / ACTIVATION;
  return row.axis === "cp"
    ? times("Keys and values of a block of the sequence.", "tokens · width of both · bytes", whole, width)
    : times("Activations of a microbatch, gathered.", "tokens · width · bytes", whole, width);
}

const COLLECTIVES = {
  "all-gather": "ring_all_gather_time",
  "reduce-scatter": "ring_reduce_scatter_time",
  "all-reduce": "ring_all_reduce_time",
  "all-to-all": "pairwise_all_to_all_time",
  send: "point_to_point_time",
};

// The bandwidth and latency of one call of a row; rings share the adapters of a node.
function linkOf({ job: { cluster }, setup: { parallel } }, row) {
  const { level, members_per_node: near } = group_link(parallel, row.axis);
  if (level === "scale-up")
    return { bandwidth_bytes_per_s: cluster.scale_up_bandwidth_bytes_per_s, latency_s: cluster.scale_up_latency_s };
  const ring = !["send", "all-to-all"].includes(row.collective);
  const shared = Math.min(cluster.scale_up_bandwidth_bytes_per_s, (ring ? near : 1) * cluster.network_bandwidth_bytes_per_s);
  // A ring crosses between nodes as often as it has nodes, minus one; this is the mean over all calls.
  const far = ring ? (Math.ceil(row.size / near) - 1) / (row.size - 1) : 1;
  const latency_s = far * cluster.network_latency_s + (1 - far) * cluster.scale_up_latency_s;
  return { bandwidth_bytes_per_s: shared, latency_s, near };
}

function callLines(found, notes, row) {
  const { near, ...link } = linkOf(found, row);
  const call = { ...link, message_bytes: row.buffer_bytes, ...(row.collective !== "send" && { ranks: row.size }) };
  const each = row.time_s / row.calls;
  // An all-to-all that leaves a node uses both links at once, which no single formula expresses.
  const mixed = row.collective === "all-to-all" && near > 1;
  const one = mixed
    ? plainLine(
        "Both links work at once: the longer of the two times, inside the node and between nodes, plus the latencies of its steps.",
        "one call",
        seconds(each),
      )
    : workedLine(notes, COLLECTIVES[row.collective], call);
  return [
    one,
    each > one.value * (1 + 1e-9)
      ? plainLine(
          "The step waits longer for these calls than they take at the datasheet's bandwidth, so a call takes at least as long as the wait.",
          "one call · longer",
          `${seconds(one.value)} · ${plainNumber(each / one.value, 4)} = ${seconds(each)}`,
        )
      : null,
    plainLine(
      "All calls of the step.",
      "calls · one call",
      `${plainNumber(row.calls)} · ${seconds(each)} = ${seconds(row.time_s)}`,
    ),
  ].filter(Boolean);
}

// Hops between all stages delay the step, not only those of this GPU.
const exposedLine = ({ job }, row) =>
  row.axis === "pp" && !job.parts
    ? plainLine(
        "By how much messages lengthen the simulated step. The hops of all stages add up, so this can exceed the time of this GPU's own sends.",
        "simulated step − the same step with messages that take no time, divided among the kinds of sends",
        seconds(row.exposed_s),
      )
    : plainLine(
        `The part of ${seconds(row.time_s)} that the step waits for, by the rule: ${row.rule}.`,
        "exposed / time",
        `${seconds(row.exposed_s)} / ${seconds(row.time_s)} = ${percent(row.time_s ? row.exposed_s / row.time_s : 0)}`,
      );

const together = (title, rows, of, format) =>
  sumLine(
    title,
    rows.map((row) => [`${axisLabel(row.axis)} ${nameOf(row)}`, of(row)]),
    rows.reduce((sum, row) => sum + of(row), 0),
    format,
  );

const meeting = ({ step }, axis, level) =>
  step.communication.filter((row) => (!axis || row.axis === axis) && (!level || row.level === level));

/** Keys of worked lines about communication. */
export const TRAFFIC = {
  row: (found, notes, index) => callLines(found, notes, rowOf(found, index)),
  waited: (found, notes, index) => [
    exposedLine(found, rowOf(found, index)),
    ...callLines(found, notes, rowOf(found, index)),
  ],
  size: (found, _, index) => sizeLines(found, rowOf(found, index)),
  calls: (found, _, index) => callsLines(found, rowOf(found, index)),
  buffer: (found, notes, index) => bufferLines(found, notes, rowOf(found, index)),
  sent: (found, _, index) =>
    index === undefined
      ? [together("All bytes that a GPU sends in a step.", meeting(found), (row) => row.sent_bytes, bytes)]
      : sentLines(rowOf(found, index)),
  transfer: (found, _, axis, level) => {
    const rows = meeting(found, axis, level);
    return rows.length > 1
      ? [together("All of it.", rows, (row) => row.sent_bytes, bytes), ...rows.map(sentLine)]
      : sentLines(rows[0]);
  },
  taking: (found, _, axis, level) => [
    together("Time of all its calls.", meeting(found, axis, level), (row) => row.time_s, seconds),
  ],
  waiting: (found, _, axis, level) => [
    together("The part that the step waits for.", meeting(found, axis, level), (row) => row.exposed_s, seconds),
  ],
  load: (found, _, level) => {
    const port = (row) => row.calls * port_bytes(row, group_link(found.setup.parallel, row.axis)).get(level);
    const title = "Bytes that leave through the GPU's own link; ranks of a ring on one node share their adapters.";
    return [together(title, meeting(found), port, bytes)];
  },
  keys: ({ setup }, notes) => [workedLine(notes, "kv_ring_buffer_bytes", ringArguments(setup))],
};
