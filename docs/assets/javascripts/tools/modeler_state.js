// The modeler's state, its address, and the engine's input.
//
// The address holds the configuration, and a second one to compare with under keys that begin
// with "b.". Both are written as what differs from their preset.

import { InputError } from "../engine/errors.js";
import { OWN, engineValue, kindOf, learn, optionsOf, stateValue, takeIn } from "./modeler_options.js";
import { ownKinds, ownShape } from "./modeler_own.js";
import { SIZES } from "./job_record.js";
import { AUTO, batch, choice, defaults, number, onlyValue, optional, parseQuery, toQuery } from "./state.js";

export { OWN };

const LAYOUT = [...SIZES, "order"];

/** The remaining data parallelism, whole if the sizes fit together. */
export const replicasOf = ({ nodes, gpus, tp, cp, pp }) => (nodes * gpus) / (tp * cp * pp);

/** The initial example: the four stages and eight microbatches of many texts. */
export const FIRST = Object.freeze({ nodes: 12, gpus: 8, tp: 8, pp: 4, microbatches: 8 });

/** Models for a layout that has experts and no model; the first that fits is used. */
const MIXTURES = ["mixtral-8x7b", "qwen-3-235b-a22b", "deepseek-v3"];

/** The unit of a reader's own number as written, in SI. */
export const SCALES = {
  peak: 1e12, hbm: 1e9, bw: 1e9, up: 1e9, net: 1e9, reserve: 1e9, alpha_up: 1e-6, alpha_net: 1e-6,
};

/** Every key that may be set, with its kind; `catalog` has the options and names. */
export function schemaOf(catalog) {
  learn(catalog);
  return {
    preset: choice("", ["", ...presetsOf(catalog).map(({ name }) => name)]),
    show: word("", /^[a-z-]{0,8}$/),
    ...Object.fromEntries(optionsOf(catalog).map((option) => [option.key, kindOf(option)])),
    ...ownKinds(),
    peak: inUnit("TFLOP/s", number(989.4, 1, 1e6)), hbm: inUnit("GB", number(80, 1, 1e5)),
    bw: inUnit("GB/s", optional(number(null, 1, 1e6))), up: inUnit("GB/s", number(450, 0.1, 1e5)),
    net: inUnit("GB/s", number(50, 0.01, 1e5)),
  };
}

/** Every key of an address: also options that follow from others, and those of a second configuration. */
export const addressKinds = (schema) => ({ ...schema, dp: {}, global_batch: batch(), compare: {} });

const inUnit = (unit, kind) => ({ ...kind, unit });

const word = (fallback, pattern) => ({
  fallback, expected: "a short word", read: (given) => (pattern.test(given) ? given : undefined),
});

/** Presets with a layout: { name, title, kind, choices }. */
export const presetsOf = (catalog) =>
  Object.entries(catalog.presets)
    .filter(([, { kind, choices }]) => kind !== "hardware" && choices)
    .map(([name, preset]) => ({ name, ...preset }));

/** The choices of a preset, by the keys of the state. */
export function ofPreset(catalog, name) {
  const found = catalog.presets[name]?.choices;
  return found ? withMixture(catalog, stateOf(catalog, found)) : {};
}

function stateOf(catalog, choices) {
  const known = optionsOf(catalog).filter(({ name }) => name in choices);
  return Object.fromEntries(known.map((option) => [option.key, stateValue(option, choices[option.name])]));
}

function withMixture(catalog, given) {
  if (given.model || !(given.ep > 1)) return given;
  const model = MIXTURES.find((name) => catalog.models[name]?.experts?.count % given.ep === 0);
  return model ? { ...given, model } : given;
}

/** The engine's input: keys of the catalog, or the reader's own numbers in SI. */
export function choicesOf(catalog, state) {
  const si = (key) => state[key] * SCALES[key];
  const asked = optionsOf(catalog).map((option) => [option.name, engineValue(option, state[option.key])]);
  const own = {
    model: state.model === OWN && ownShape(state),
    accelerator: state.chip === OWN && {
      peak_flops_per_s: si("peak"), memory_bytes: si("hbm"), scale_up_bandwidth_bytes_per_s: si("up"),
      // Without it, no time is predicted.
      ...(state.bw !== null && { memory_bandwidth_bytes_per_s: si("bw") }),
    },
    nic: state.nic === OWN && { bandwidth_bytes_per_s: si("net") },
  };
  return { ...Object.fromEntries(asked), ...Object.fromEntries(Object.entries(own).filter(([, given]) => given)) };
}

// The base that an address's keys modify: its preset, the first example, or the defaults.
function baseOf(schema, catalog, preset, bare) {
  if (preset) return { ...defaults(schema), ...ofPreset(catalog, preset), preset };
  return bare ? { ...defaults(schema), ...FIRST } : defaults(schema);
}

// The differences from `base`, with a word for derived values where `base` has a number.
function written(schema, state, base) {
  const query = new URLSearchParams(toQuery(schema, state, base));
  for (const key of Object.keys(schema)) {
    if (state[key] === null && (base[key] ?? null) !== null) query.set(key, AUTO);
  }
  return query;
}

const isBare = (given) => !LAYOUT.some((key) => key in given);

/** { a, b, problems } of an address; `b` is null unless it compares. */
export function fromQuery(schema, catalog, query) {
  const [mine, other] = [new URLSearchParams(), new URLSearchParams()];
  for (const [key, value] of new URLSearchParams(query)) {
    if (key === "compare") continue;
    if (key.startsWith("b.")) other.append(key.slice(2), value);
    else mine.append(key, value);
  }
  const renamed = [mine, other].map((given) => takeIn(catalog, given));
  const first = parseQuery(schema, mine);
  first.problems.push(...renamed[0]);
  const bare = isBare(first.given);
  let base = baseOf(schema, catalog, first.given.preset, bare);
  if (!bare && !first.given.model) base = { ...base, ...withMixture(catalog, { ...(!first.given.preset && first.given) }) };
  const a = withBatch({ ...base, ...first.given }, mine, first.problems);
  if (![...new URLSearchParams(query).keys()].some((key) => key === "compare" || key.startsWith("b."))) {
    return { a, b: null, problems: first.problems };
  }
  const second = parseQuery(schema, other);
  const start = second.given.preset ? baseOf(schema, catalog, second.given.preset, false) : a;
  second.problems.push(...renamed[1]);
  // A batch in the address applies to both, unless B has its own.
  const batch = mine.get("global_batch");
  if (batch !== null && !["preset", "microbatches", "global_batch"].some((key) => other.has(key))) other.set("global_batch", batch);
  const b = withBatch({ ...start, ...second.given }, other, second.problems);
  const problems = [...first.problems, ...second.problems.map((found) => `B: ${found}`)];
  return { a, b, problems };
}

// Options that follow from others here, which an address may set anyway, as pages and commands do.
function withBatch(state, query, problems) {
  const dp = replicasOf(state);
  const [replicas, batch] = ["dp", "global_batch"].map((key) => onlyValue(query, key, problems));
  if (!Number.isInteger(dp)) return state;
  const refuse = (key, expected, got) => problems.push(new InputError(key, { expected, got: got.slice(0, 40) }).message);
  if (replicas !== null && replicas !== String(dp)) refuse("dp", `${dp}, which is left`, replicas);
  if (batch === null) return state;
  const share = dp * state.microbatch_size;
  const said = query.has("microbatches") && state.microbatches;
  const microbatches = /^\d{1,9}$/.test(batch) ? Number(batch) / share : NaN;
  if (said ? microbatches === said : Number.isInteger(microbatches) && microbatches >= 1) return { ...state, microbatches };
  refuse("global_batch", said ? `${share * said}` : `a multiple of ${share}`, batch);
  return state;
}

/** The query of a configuration and of the one it is compared with, if any. */
export function queryOf(schema, catalog, a, b = null) {
  const found = one(schema, catalog, a);
  if (!b) return found.toString();
  found.set("compare", "1");
  const other = b.preset && b.preset !== a.preset ? baseOf(schema, catalog, b.preset, false) : null;
  const differs = written(schema, b, other ? { ...other, preset: "" } : a);
  for (const [key, value] of differs) found.set(`b.${key}`, value);
  return found.toString();
}

function one(schema, catalog, state) {
  if (state.preset) {
    const base = baseOf(schema, catalog, state.preset, false);
    return written(schema, state, { ...base, preset: "" });
  }
  const first = baseOf(schema, catalog, "", true);
  const same = Object.keys(schema).every((key) => state[key] === first[key]);
  // An address without sizes would be read as the first example.
  if (same) return new URLSearchParams();
  const usual = defaults(schema);
  const { model = usual.model } = withMixture(catalog, { ep: state.ep });
  return written(schema, state, { ...usual, model, nodes: undefined });
}

/** A configuration in the form of all tools; batch and sequence come from the computed `setup`. */
export function jobRecord(schema, catalog, state, setup = null) {
  const job = state.preset ? one(schema, catalog, state) : written(schema, state, defaults(schema));
  for (const key of [...LAYOUT, "model", "chip", "software"]) if ((state[key] ?? null) !== null) job.set(key, state[key]);
  if (setup) {
    for (const key of ["sequence", "global_batch"]) job.set(key, setup[key]);
    job.delete("microbatches");
  }
  job.delete("show");
  return job;
}
