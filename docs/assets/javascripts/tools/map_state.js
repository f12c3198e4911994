// The state of the rank map: a configuration, what is shown of it, and how both are written in the
// address. No document here.

import { InputError, grouped } from "../engine/errors.js";
import { CONVENTIONS, convention } from "../models/machine/frameworks.js";
import { layout } from "../models/machine/layout.js";
import { SIZES } from "./job_record.js";
import { AUTO, choice, defaults, flag, optional, parseQuery, text, toQuery, whole } from "./state.js";

/** What the GPUs can be colored by, in the order of the buttons. */
export const SHOWS = ["tp", "cp", "ep", "dp", "edp", "pp", "tp-cp", "dp-cp", "etp", "none"];

/** The largest world that is drawn. */
export const MOST_DRAWN = 131_072;

/** The initial example. */
export const FIRST_PRESET = "map-128";

export const schemaOf = (layouts) => ({
  preset: choice(
    "",
    layouts.map(({ name }) => name),
  ),
  nodes: whole(1),
  gpus: whole(8),
  tp: whole(1),
  cp: whole(1),
  ep: whole(1),
  etp: optional(whole(null)),
  pp: whole(1),
  order: text("megatron", convention),
  show: choice("tp", SHOWS),
  dp: whole(null),
  rank: whole(null, 0, MOST_DRAWN - 1),
  group: whole(null, 0, MOST_DRAWN - 1),
  moved: flag(false),
});

/** The preset with exactly these sizes, or undefined; `preferred` first. */
export function presetOf(state, layouts, preferred = "") {
  const same = (one) => SIZES.every((key) => one[key] === state[key]);
  const found = layouts.filter(same);
  return found.find(({ name }) => name === preferred) ?? found[0];
}

/** The state of an address and its problems. Its sizes override those of its preset. */
export function fromQuery(schema, layouts, query) {
  const { given, problems } = parseQuery(schema, query);
  const bare = ![...SIZES, "dp", "preset"].some((key) => key in given);
  const name = given.preset ?? (bare ? FIRST_PRESET : "");
  const preset = layouts.find((one) => one.name === name);
  const state = { ...defaults(schema), ...(preset && ofPreset(preset)), ...given };
  return { state: named(state, layouts, name), problems };
}

/** The query of a state: a preset by its name, other configurations by their sizes. */
export function queryOf(schema, layouts, state) {
  const preset = layouts.find((one) => one.name === state.preset);
  // An address without sizes would be read as the first preset's.
  const sizes = { ...defaults(schema), preset: state.preset, nodes: undefined };
  if (!preset || state.dp !== null) return toQuery(schema, state, sizes);
  const base = { ...defaults(schema), ...ofPreset(preset) };
  const nothing = preset.name === FIRST_PRESET;
  return toQuery(schema, state, { ...base, preset: nothing ? preset.name : "" });
}

/** The sizes and the rank order of a preset. */
export const ofPreset = (preset) =>
  Object.fromEntries([...SIZES, "order"].map((key) => [key, preset[key]]));

/** The state with the name of the preset that it equals, if any. */
export const named = (state, layouts, preferred = state.preset) => ({
  ...state,
  preset: presetOf(state, layouts, preferred)?.name ?? "",
});

/** { parallel } of a state, or { error }, an InputError whose `nearest` can be applied. */
export function evaluate(state) {
  const { nodes, gpus, tp, cp, ep, etp, dp, pp, order } = state;
  try {
    if (nodes * gpus > MOST_DRAWN) {
      const most = `at most ${grouped(MOST_DRAWN)} GPUs in the picture`;
      throw new InputError("nodes × GPUs per node", { expected: most, got: nodes * gpus });
    }
    return { parallel: layout(nodes, gpus, tp, cp, pp, ep, etp, dp, order) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error };
  }
}

/** The state with one of `error.nearest`, for example "tp=4 dp=2", applied; DP is derived again. */
export function applied(state, text) {
  const changes = Object.fromEntries(
    text.split(" ").map((word) => {
      const [key, size] = word.split("=");
      return [key, Number(size)];
    }),
  );
  const unnamed = Object.fromEntries(["tp", "cp", "pp", "ep"].map((key) => [key, changes[key] ?? 1]));
  return { ...state, ...unnamed, ...changes, dp: null };
}

/** A layout to show instead of a first configuration that does not fit. */
export function standIn(state, error, layouts) {
  const near = error.nearest.length ? evaluate(applied(state, error.nearest[0])).parallel : null;
  const first = layouts.find(({ name }) => name === FIRST_PRESET);
  return near ?? evaluate({ ...ofPreset(first), dp: null }).parallel;
}

/** The query with which another tool opens the same configuration, with the rest of the `job`. */
export function handedOn(schema, state, job = new URLSearchParams()) {
  const sizes = [...SIZES, "order"];
  if (job.size) {
    const all = new URLSearchParams(job);
    for (const key of sizes) all.set(key, state[key] ?? AUTO);
    return all.toString();
  }
  // A preset's name implies its sizes.
  const own = ["preset", "show", ...(state.preset ? ["order"] : sizes)];
  const query = new URLSearchParams(toQuery(schema, state, { ...defaults(schema), nodes: undefined }));
  return new URLSearchParams([...query].filter(([key]) => own.includes(key))).toString();
}

/** What `applied` would change, in words: "TP 8 → 4". */
export function changesOf(state, text) {
  const next = applied(state, text);
  const dp = /(^| )dp=(\d+)/.exec(text)?.[2];
  const names = { nodes: "nodes", tp: "TP", cp: "CP", pp: "PP", ep: "EP", etp: "ETP" };
  const words = Object.keys(names)
    .filter((key) => next[key] !== state[key])
    .map((key) => `${names[key]} ${state[key] ?? "auto"} → ${next[key]}`);
  if (dp && state.dp !== null && Number(dp) !== state.dp) words.push(`DP ${state.dp} → ${dp}`);
  return words.length ? words.join(", ") : `DP ${dp ?? "derived"}`;
}

/** Orders in the selector, as [name, label], Megatron's first. */
export const ORDERS = [...CONVENTIONS.values()].map(({ name, label, order }) => [
  name,
  `${label} (${order.join("-")})`,
]);

/** Communicators that the layout has, in the order of `SHOWS`. */
export function showsOf(parallel) {
  const experts = ["ep", "edp", "etp"];
  return SHOWS.filter(
    (name) =>
      !experts.includes(name) ||
      (parallel.has_experts && (name !== "etp" || parallel.etp !== parallel.tp)),
  );
}

/** Keeps the GPU and group that are pointed at inside a layout. */
export function within(state, parallel, groupCount) {
  const rank = state.rank !== null && state.rank < parallel.world_size ? state.rank : null;
  const group = state.group !== null && state.group < groupCount ? state.group : null;
  return { ...state, rank, group };
}
