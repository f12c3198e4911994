// Converts a reader's own job to a state of the modeler. Loaded on demand.

import { InputError } from "../engine/errors.js";
import { missing_sizes, shape_of_sizes } from "../scenarios/architectures/sizes.js";
import { OWN, optionsOf } from "./modeler_options.js";
import { ownKinds, ownOf } from "./modeler_own.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { readValue, toQuery } from "./state.js";
import { askFor, is_model_file, knownOf, takeText, takenRows, told } from "./taken.js";

// Sizes of a model that is not in the catalog, by their names in scripts and on the command line.
const SIZES = [
  "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "top_k", "expert_ffn", "shared_experts",
  "dense_layers", "query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim", "window", "full_every",
  "activation", "norm", "qk_norm", "tied", "bias", "qkv_bias", "learned_positions",
];
// The fields of the machine that the page names where a text leaves them to it.
const STAYING = ["nodes", "gpus", "chip", "nic"];
// Fields that keep the page's value if a text doesn't set them: the machine.
const MACHINE = [...STAYING, "peak", "hbm", "bw", "up", "net"];

/** The changes that use a file's shape as the reader's own model; InputError if an address can't hold it. */
export function ownOfShape(shape) {
  const own = ownOf(shape);
  const kinds = ownKinds();
  for (const [key, value] of Object.entries(own)) if (typeof value === "number") readValue(kinds, key, String(value));
  return { ...own, model: OWN, sequence: shape.sequence, ...(!own.experts && { ep: 1, etp: null }) };
}

/**
 * { changes, found, problems, kept } of a text: changes to a state of the modeler, null while values of
 * variables are missing; all that was read; messages about parts that cannot be computed; and the keys
 * that keep the page's values. `modelFile` reads a model's own file. Throws InputError for a text without a job.
 */
export function takeJob(catalog, state, text, answers, modelFile) {
  const found = takeText(text, answers, modelFile);
  if (found.shape) return { changes: ownOfShape(found.shape), found, problems: [], kept: [...STAYING, ...(state.tp * state.pp > 1 ? ["job"] : [])] };
  if (found.asked.length) return { changes: null, found, problems: [], kept: [] };
  const known = knownOf(found);
  const schema = schemaOf(catalog);
  const own = modelOf(known);
  const said = new URLSearchParams(own.changes ? toQuery(schema, own.changes, {}) : "");
  for (const option of optionsOf(catalog)) {
    if (option.name in known && !(own.changes && option.name === "model")) said.set(option.key, written(option, known[option.name]));
  }
  if ("dp" in found.taken && "nodes" in known) said.set("dp", found.taken.dp);
  if ("global_batch" in known) {
    said.delete("microbatches");
    said.set("global_batch", known.global_batch);
  }
  // A line of this site says all that it means. A sequence is as long as a model's, so the page's counts only with the page's model.
  const keys = [...(said.has("model") ? [] : ["model", "sequence", ...Object.keys(ownKinds())]), ...MACHINE];
  const kept = (found.dialect === "figgen" ? [] : keys).filter((key) => !said.has(key) && state[key] !== null && state[key] !== undefined);
  for (const name of Object.keys(found.assumed)) {
    if (kept.includes(optionsOf(catalog).find((option) => option.name === name)?.key)) delete found.assumed[name];
  }
  const page = new URLSearchParams(toQuery(schema, Object.fromEntries(kept.map((key) => [key, state[key]])), {}));
  for (const [key, value] of page) said.set(key, value);
  const { a, problems } = fromQuery(schema, catalog, said);
  return { changes: { ...a, preset: "" }, found, problems: [...own.problems, ...problems], kept };
}

// The shape from the sizes in a text that names no model.
function modelOf(known) {
  const sizes = new Map(SIZES.filter((name) => name in known).map((name) => [name, known[name]]));
  if ("model" in known || !sizes.has("layers") || !sizes.has("hidden")) return { changes: null, problems: [] };
  const missing = missing_sizes(sizes);
  // The table's size comes with its tokenizer if no script gives it.
  const problems = missing.includes("vocab") ? ["the text doesn't give the size of the vocabulary; 128,256 is assumed"] : [];
  if (problems.length) sizes.set("vocab", 128_256);
  try {
    return { changes: { ...ownOfShape(shape_of_sizes(sizes, null)), sequence: undefined, ep: undefined, etp: undefined }, problems };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { changes: null, problems: [error.message] };
  }
}

// A value as in an address: numbers in the form's unit.
function written({ unit }, value) {
  if (typeof value === "boolean") return value ? "1" : "0";
  return unit && typeof value === "string" ? value.replace(unit, "").trim() : String(value);
}

/** The rows that the page's box shows for `takeJob`, each a kind and a sentence. */
export function jobRows(catalog, { found, problems, kept }, state) {
  const stay = ["model", ...STAYING, "job"].filter((key) => kept.includes(key));
  const words = {
    model: () => catalog.models[state.model]?.title ?? "the own shape", nodes: () => `${state.nodes} nodes`, gpus: () => `${state.gpus} GPUs per node`,
    chip: () => catalog.accelerators[state.chip]?.title ?? "own GPUs", nic: () => catalog.links[state.nic]?.title ?? "own links",
    job: () => `TP ${state.tp}, PP ${state.pp} and the rest of the job, for which the planner finds a layout`,
  };
  const stays = stay.map((key) => words[key]());
  return [
    ...problems.map((problem) => ["bad", `${problem[0].toUpperCase()}${problem.slice(1)}${/[.?]$/.test(problem) ? "" : "."}`]),
    ...takenRows(found),
    ...(stays.length ? [["plain", `Not in the text, so kept from the page: ${stays.join(", ")}.`]] : []),
  ];
}

/** The page's answer to a reader's text, and a form for missing values; `apply(changes)` uses its job. */
export async function readJob(catalog, state, { text, answers, again }, apply) {
  const { modelFile } = is_model_file(text) ? await import("./model_file.js") : {};
  let job;
  try {
    job = takeJob(catalog, state, text, answers, modelFile);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return [told(["bad", `${error.message}.`])];
  }
  if (job.changes) apply(job.changes);
  return [...jobRows(catalog, job, state).map(told), ...askFor(job.found.asked, again)];
}
