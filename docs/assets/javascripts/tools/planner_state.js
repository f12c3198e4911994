// The planner's state, its address, and links to the other tools. A job is the modeler's state without
// its layout; given parts of the layout are fixed, the rest is searched. Pure.

import { InputError } from "../engine/errors.js";
import { OWN, takeIn } from "./modeler_options.js";
import { mapOf } from "./job_carried.js";
import { choicesOf, jobRecord, ofPreset, queryOf, schemaOf } from "./modeler_state.js";
import { LEAST_PERCENT, MOST_PERCENT, SAFE } from "../models/memory/fit_probability.js";
import { GOALS } from "../models/planner/node_counts.js";
import { TABLES } from "../plan-memory.js";
import { batch, choice, defaults, flag, number, optional, parseQuery, toQuery, whole } from "./state.js";

/** Keys of the modeler that describe one layout, and mean nothing to a search. */
const UNUSED = ["layers_per_stage", "efficiency", "show"];

/** Keys of options that are searched unless they are set. */
export const SEARCHED = ["tp", "cp", "pp", "ep", "etp", "dp", "chunks", "microbatch_size", "zero", "schedule", "recompute"];

/** The initial example. */
const FIRST = Object.freeze({ model: "llama-3-70b", nodes: 8, gpus: 8 });

export function planSchema(catalog) {
  const schema = { ...schemaOf(catalog), dp: optional(whole(null)), global_batch: { ...optional(batch()), fallback: null }, every: flag(false), chance: number(100 * SAFE, LEAST_PERCENT, MOST_PERCENT) };
  for (const key of UNUSED) delete schema[key];
  for (const key of [...SEARCHED, "microbatches"]) schema[key] = schema[key].fallback === null ? schema[key] : { ...optional(schema[key]), fallback: null };
  schema.bw = number(3350, 1, 1e6); // GB/s of an own chip's memory
  schema.ask = choice("", ["", ...GOALS]);
  schema.tokens = { ...number(1000, 1, 1e9), unit: "B tokens" };
  schema.days = { ...number(30, 0.01, 36_500), unit: "day" };
  schema.budget = number(1e6, 1, 1e15); // in the currency of the price
  schema.price = optional(number(null, 1e-6, 1e6)); // of one GPU for an hour
  schema.failures = choice("llama-3-405b", Object.keys(TABLES.failures));
  return schema;
}

// A published run's job: its model, cluster, batch and software, without its layout.
export function jobOf(schema, catalog, name) {
  const given = Object.fromEntries(Object.entries(ofPreset(catalog, name)).filter(([key]) => key in schema));
  for (const key of [...SEARCHED, "microbatches"]) delete given[key];
  const { choices, kind } = catalog.presets[name];
  if (kind === "training") given.global_batch = batchOf(choices);
  return { ...defaults(schema), ...given, preset: name };
}

const batchOf = ({ nodes, gpus_per_node, tp = 1, cp = 1, pp = 1, microbatches, microbatch_size = 1 }) =>
  ((nodes * gpus_per_node) / (tp * cp * pp)) * microbatches * microbatch_size;

/** { state, problems } of an address. */
export function fromQuery(schema, catalog, search) {
  const query = new URLSearchParams(search);
  const problems = takeIn(catalog, query);
  const { given: all, problems: more } = parseQuery(schema, query);
  const { microbatches, ...given } = all;
  problems.push(...more);
  const base = given.preset ? jobOf(schema, catalog, given.preset)
    : Object.keys(given).length ? defaults(schema) : { ...defaults(schema), ...FIRST };
  const state = { ...base, ...given };
  if (microbatches) {
    // The modeler's addresses have the batch of a layout.
    const { nodes, gpus } = state;
    const size = batchOf({ ...catalog.presets[given.preset]?.choices, ...given, nodes, gpus_per_node: gpus, microbatches });
    const { read, expected } = batch();
    const known = read(String(size));
    if (given.global_batch ? given.global_batch !== size : !Number.isFinite(size)) problems.push("microbatches is left out");
    else if (known) state.global_batch = known;
    else problems.push(new InputError("microbatches", { expected: `a batch of ${expected}`, got: size }).message);
  }
  return { state, problems };
}

export function toAddress(schema, catalog, state) {
  // In the modeler, the batch of a preset follows its layout, and an own chip has no bandwidth.
  const said = { global_batch: undefined, ...(state.chip === OWN && { bw: undefined }) };
  if (state.preset) {
    return toQuery(schema, state, { ...jobOf(schema, catalog, state.preset), ...said, preset: "" });
  }
  const first = { ...defaults(schema), ...FIRST };
  if (Object.keys(schema).every((key) => state[key] === first[key])) return "";
  // An empty query would be read as the first example.
  return toQuery(schema, state, { ...defaults(schema), ...said, nodes: undefined });
}

/** The question besides a layout, in the form that planner_nodes.js expects, or null. */
export function questionOf({ ask, days, budget, tokens, price, failures, chance }) {
  return ask ? { kind: ask, days, budget, tokens, price, failures, chance: chance / 100 } : null;
}

/** The limits of the search: schedules that the software lacks, and the required chance to fit. */
export const searchOf = ({ every, chance }) => ({ every, chance: chance / 100 });

/** The input of the engine. */
export function planChoices(catalog, state) {
  return { ...choicesOf(catalog, state), dp: state.dp, global_batch: state.global_batch };
}

// A state in the modeler's form; searched options have their defaults.
function jobState(schema, state) {
  const known = Object.keys(schema).filter((key) => (state[key] ?? null) !== null).map((key) => [key, state[key]]);
  return { ...defaults(schema), ...Object.fromEntries(known), bw: state.chip === OWN ? state.bw : null, preset: "" };
}

/** The planner's job for other tools, without a layout until there is an answer. */
export function askedJob(catalog, state) {
  const schema = schemaOf(catalog);
  const job = jobRecord(schema, catalog, jobState(schema, state));
  if (state.global_batch !== null) job.set("global_batch", state.global_batch);
  return job;
}

/** Queries of modeler and rank map, and the job for all tools, for one of the layouts that were `found`. */
export function ways(catalog, state, layout, found = null) {
  const schema = schemaOf(catalog);
  const { tp, cp, pp, ep, etp, microbatch_size, microbatches, schedule, chunks, zero_stage, recompute } = layout;
  const full = {
    ...jobState(schema, state), tp, cp, pp, ep, etp, microbatch_size, microbatches, recompute,
    schedule: pp > 1 ? schedule : "1f1b", chunks: pp > 1 && chunks > 1 ? chunks : null, zero: String(zero_stage),
  };
  return { modeler: queryOf(schema, catalog, full), map: mapOf(jobRecord(schema, catalog, full)).toString(), job: found && jobRecord(schema, catalog, full, found) };
}
