// The fields of the modeler's form as data, from the table of options. When each is shown, and the
// reader's own numbers, are defined here.

import { nodesOf } from "./modeler_hardware.js";
import { OWN, allOptions, wordOf } from "./modeler_options.js";
import { plainNumber, quantity } from "./quantities.js";

const CHUNKED = ["interleaved-1f1b", "looped-bfs", "zb1p"];
const own = (key) => (state) => state[key] === OWN;
const mixture = (state, catalog) =>
  state.model === OWN ? state.experts !== null : Boolean(catalog.models[state.model]?.experts);

const number = (key, label, more = {}) => ({ key, label, kind: "number", ...more });

// When the fields of the reader's own model are shown, by the part of the model that they belong to.
const OWN_SHAPE = {
  model: own("model"),
  experts: (state) => state.model === OWN && state.experts !== null,
  kv_rank: (state) => state.model === OWN && state.kv_rank !== null,
  mixer_heads: (state) => state.model === OWN && state.mixer_heads !== null,
};

// Fields that the form adds after an option.
const AFTER = {
  accelerator: [
    number("peak", "Dense peak, TFLOP/s", { shows: own("chip") }),
    number("hbm", "Memory, GB", { shows: own("chip") }),
    number("bw", "Memory bandwidth, GB/s", { shows: own("chip"), empty: "unknown", hint: "needed to predict a time" }),
    number("up", "Link inside a node, GB/s", { shows: own("chip"), wide: true, hint: "per GPU per direction" }),
  ],
  nic: [
    number("net", "Network link, GB/s", { shows: own("nic"), wide: true, hint: "per GPU per direction" }),
  ],
  time_factor: [
    { key: "step_time", label: "Your measured step, s", kind: "step", wide: true, hint: "sets the factor, so that all times of this job and its alternatives are scaled to it" },
  ],
  sequence: [{ key: "hold", label: "Keep the global batch; adjust microbatches", kind: "hold", wide: true }],
};

const microseconds = (time_s) => Math.round(1e8 * time_s) / 100;
const tuned = (state) => state.lora_rank !== null || state.frozen_weights !== "16-bit";

// What the form adds to an option beyond the table.
const MORE = {
  dp: { kind: "derived" },
  global_batch: { kind: "batch" },
  microbatches: { kind: "size", derived: ({ setup }) => setup.microbatches, hint: "per replica per step" },
  sequence: { derived: ({ setup }) => setup.sequence },
  scale_up_latency_s: { derived: ({ cluster }) => microseconds(cluster.scale_up_latency_s) },
  network_latency_s: { derived: ({ cluster }) => microseconds(cluster.network_latency_s) },
  join_hosts: { shows: (state, catalog) => catalog.accelerators[state.chip]?.host_gpus },
  ep: { shows: (state, all) => mixture(state, all) || state.ep > 1 },
  etp: { shows: (state, all) => mixture(state, all) || state.etp !== null, empty: "auto" },
  schedule: { shows: (state) => state.pp > 1 || state.schedule !== "1f1b" },
  chunks: { empty: "auto", shows: ({ schedule, chunks }) => CHUNKED.includes(schedule) || chunks !== null },
  layers_per_stage: { empty: "even", wide: true, shows: ({ pp, layers_per_stage: given }) => pp > 1 || given !== null },
  document_tokens: { empty: "one", wide: true },
  buckets: { empty: "auto" },
  lora_rank: { empty: "none", wide: true },
  lora_matrices: { shows: tuned },
  frozen_weights: { shows: tuned },
  compute_efficiency: { empty: "auto" },
  time_factor: { empty: "1" },
  measured: { kind: "file", wide: true },
  context_exchange: { shows: (state) => state.cp > 1 },
};

const LAST = { model: "Own shape …", accelerator: "Own numbers …", nic: "Own number …" };

function fieldOf(option, catalog) {
  const { name, key, label, kind, hint, unit, choices, required, default: usual, low } = option;
  const last = LAST[name]; // its hint is about the command line, which reads files
  const about = { key, label: unit ? `${label}, ${unit}` : label, hint: last ? null : hint, option: name };
  const more = MORE[name] ?? {};
  if (kind === "switch") return { ...about, kind: "check", wide: true, ...more };
  if (choices) {
    const options = name === "nic" ? choices.map(([link, words]) => [link, rated(words, catalog.links[link])]) : choices;
    return { ...about, kind: "select", options: last ? [...options, [OWN, last]] : options, wide: true, ...more };
  }
  if (kind === "whole") return { ...about, kind: (required || usual === low) ? "size" : "whole", ...more };
  return { ...about, kind: kind === "counts" ? "whole" : "number", ...more };
}

const rated = (words, { bandwidth_bytes_per_s, per }) => `${words}: ${quantity(bandwidth_bytes_per_s, "B/s")} per ${per}`;

const OPEN = ["model", "hardware", "parallelism", "batch"];

// The summary of a closed group.
const SAYS = {
  model: ({ model }, _, catalog) => catalog.models[model]?.title ?? "own shape",
  hardware: ({ nodes, gpus, chip, nic }, _, catalog) =>
    `${plainNumber(nodes)} × ${gpus} ${catalog.accelerators[chip]?.title ?? "own GPUs"}, ${catalog.links[nic]?.title ?? "own links"}`,
  parallelism: ({ tp, pp, cp, ep }, { setup }) =>
    `TP ${tp}, PP ${pp}, CP ${cp}${ep > 1 ? `, EP ${ep}` : ""}, DP ${setup?.parallel.dp ?? "–"}`,
  batch: ({ pp, schedule }, { setup }) =>
    setup
      ? `${plainNumber(setup.global_batch)} × ${plainNumber(setup.sequence)} tokens, ${plainNumber(setup.microbatches)} microbatches${pp > 1 ? `, ${wordOf("schedule", schedule)}` : ""}`
      : "–",
  state: ({ zero, recipe, recompute, dtype }) =>
    `ZeRO ${zero}, ${recipe}, recompute ${wordOf("recompute", recompute) ?? recompute.replaceAll(",", ", ")}, ${dtype.toUpperCase()}`,
  tuning: ({ lora_rank: rank, frozen_weights }) =>
    rank === null ? "all weights are trained" : `LoRA of rank ${rank} next to ${frozen_weights} weights`,
  overlap: ({ efficiency, overlap, factor }) => `${factor === null ? "" : `${plainNumber(factor, 3)} × `}${efficiency === null ? "as predicted" : `${plainNumber(100 * efficiency)}% of the peak`}, overlap ${overlap ? "on" : "off"}`,
};

/** Groups of the form: { title, open, fields, says(state, found) }; a field has `hint`, `shows(state, catalog)`. */
export const groupsOf = (catalog) =>
  Object.entries(catalog.groups).map(([name, title]) => ({
    title,
    open: OPEN.includes(name),
    nodes: name === "hardware" ? nodesOf(catalog) : null,
    says: (state, found) => SAYS[name]?.(state, found, catalog) ?? "",
    fields: allOptions(catalog)
      .filter(({ group }) => group === name)
      .flatMap((option) => [fieldOf(option, catalog), ...(AFTER[option.name] ?? [])])
      .concat(name === "model" ? catalog.own_shape.map(({ of, ...one }) => ({ ...one, shows: OWN_SHAPE[of] })) : []),
  }));

// Options that describe a job in short, next to its model.
const SHORT = ["nodes", "gpus", "chip", "peak", "hbm", "bw", "up", "global_batch", "sequence"];

/** The same with a few fields first, open on a phone too; groups of all others are `rest`. */
export function shortFirst(catalog) {
  const [model, ...others] = groupsOf(catalog);
  const isShort = ({ key }) => SHORT.includes(key);
  return [
    { ...model, title: "Your job", always: true, fields: [...model.fields, ...others.flatMap(({ fields }) => fields.filter(isShort))] },
    ...others.map((group) => ({ ...group, rest: true, fields: group.fields.filter((one) => !isShort(one)) })),
  ];
}

/** A value as its control shows it. */
export const written = (value) => (value === null || value === undefined ? "" : String(value));

/** Presets as groups of a select. */
export const presetGroups = (presets) => [
  ["Published runs", presets.filter(({ kind }) => kind === "training").map(({ name, title }) => [name, title])],
  ["Layouts of the rank map", presets.filter(({ kind }) => kind === "map").map(({ name, title }) => [name, title])],
];
