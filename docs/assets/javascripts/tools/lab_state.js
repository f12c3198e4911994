// The schedule lab's state as typed, and the schedules that are simulated for it.

import { InputError, grouped } from "../engine/errors.js";
import { record } from "../engine/records.js";
import { by_action } from "../models/pipeline/arrivals.js";
import { carried_out, peak_held, stage_shares } from "../models/pipeline/schedule_work.js";
import { CHUNKED, SCHEDULES, USUAL_CHUNKS } from "../models/pipeline/schedules.js";
import { Durations } from "../models/pipeline/trace.js";
import { labOf } from "./job_addresses.js";
import { choice, defaults, flag, number, onlyValue, parseQuery, text, toQuery, whole } from "./state.js";

/** Throws InputError if `size` exceeds the lab's limit. */
function checkMost(what, size, most) {
  if (size <= most) return;
  throw new InputError(what, { expected: `at most ${grouped(most)}`, got: size });
}

export const MOST = { stages: 64, microbatches: 512, chunks: 8, visits: 2 ** 14 };
export const RUNS = ["a", "b", "c"];
const NAMES = [...SCHEDULES.keys()];
const LONGEST_LAYERS = 400;

/** Numbers with commas between, or null for nothing. Throws InputError for anything else. */
export function layersOf(written) {
  if (written === "") return null;
  const parts = written.split(",").map((part) => part.trim());
  if (!parts.every((part) => /^\d{1,6}(\.\d{1,6})?$/.test(part))) {
    throw new InputError("layers", { expected: "numbers with commas between, as 9,9,9,5", got: written.slice(0, 40) });
  }
  return parts.map(Number);
}

const time = (fallback, min = 0) => ({ ...number(fallback, min, 1e6), unit: "ms" });

export const SCHEMA = {
  a: choice("1f1b", NAMES),
  b: choice("interleaved-1f1b", ["", ...NAMES]),
  c: choice("zbv", ["", ...NAMES]),
  stages: whole(4, 1, MOST.stages),
  microbatches: whole(8, 1, MOST.microbatches),
  chunks: whole(null, 1, MOST.chunks),
  forward: time(10),
  inputs: time(10),
  weights: time(10),
  message: time(0),
  pair: time(null),
  layers: { ...text("", layersOf), longest: LONGEST_LAYERS },
  memory: { ...number(1, 0, 1e6), unit: "GB" },
  strips: flag(true),
  path: flag(false),
};

/** { state, moves, job, problems } of an address; what it does not say follows from its `job`. */
export const fromQuery = (query, job = null) => {
  const { given, problems } = parseQuery(SCHEMA, query);
  const moves = onlyValue(new URLSearchParams(query), "moves", problems) ?? "";
  return { state: { ...baseOf(job), ...given }, moves, job, problems };
};
export const queryOf = (state, job) => toQuery(SCHEMA, state, baseOf(job));

const baseOf = (job) => ({ ...defaults(SCHEMA), ...(job && parseQuery(SCHEMA, new URLSearchParams(labOf(job))).given) });

/** The number of chunks of a schedule: the state's if the schedule has a choice, else its default. */
export const chunksOf = (name, { chunks }) =>
  (CHUNKED.includes(name) && chunks) || USUAL_CHUNKS.get(name);

/** Simulates one schedule of the state; throws InputError if it is invalid. */
export function carried(name, state) {
  const { stages, microbatches } = state;
  const chunks = chunksOf(name, state);
  checkMost(`stages · microbatches · chunks of schedule '${name}'`, stages * microbatches * chunks, MOST.visits);
  const schedule = SCHEDULES.get(name)(stages, microbatches, chunks);
  const layers = layersOf(state.layers);
  const trace = carried_out(schedule, record(Durations, timesOf(state)), layers);
  const bytes = stage_shares(schedule.placement, layers).map((share) => state.memory * 1e9 * share);
  const lanes = trace.placed;
  return { name, chunks, schedule, trace, lanes, bytes, peaks: peak_held(lanes, bytes), placed: by_action(lanes) };
}

export const timesOf = ({ forward, inputs, weights, message, pair }) => ({
  forward, backward_input: inputs, backward_weight: weights, latency: message, overlapped_pair: pair,
});

/** The results of the chosen schedules, or { key, name, error, nearest } for an invalid one. */
export function runsOf(state) {
  return RUNS.filter((key) => state[key]).map((key) => {
    const name = state[key];
    try {
      return { key, ...carried(name, state) };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return { key, name, error, nearest: nearestSizes(name, state) };
    }
  });
}

/** The sizes nearest to those of the state for which the schedule is valid. */
export function nearestSizes(name, state) {
  const { stages, microbatches } = state;
  const chunks = chunksOf(name, state);
  const layers = layersOf(state.layers);
  const found = [];
  for (const p of [stages, stages + 1, stages - 1]) {
    for (let more = 0; more <= 2 * p + 2 && found.length < 6; more++) {
      const m = microbatches + more;
      if (p < 1 || p > MOST.stages || m > MOST.microbatches || p * m * chunks > MOST.visits) continue;
      if (p === stages && m === microbatches) continue;
      try {
        stage_shares(SCHEDULES.get(name)(p, m, chunks).placement, layers);
      } catch {
        continue;
      }
      found.push({ stages: p, microbatches: m, cost: 2 * Math.abs(p - stages) + more });
      break;
    }
  }
  return found.sort((one, other) => one.cost - other.cost).slice(0, 2);
}

/** The command that prints the same. */
export function commandOf(name, state) {
  const given = [["stages", state.stages], ["microbatches", state.microbatches]];
  if (CHUNKED.includes(name)) given.push(["chunks", chunksOf(name, state)]);
  given.push(["forward", state.forward], ["backward", state.inputs], ["weight", state.weights]);
  if (state.message) given.push(["p2p", state.message]);
  if (state.pair !== null) given.push(["pair", state.pair]);
  given.push(state.layers ? ["layers", state.layers.replaceAll(" ", "")] : ["per-rank", ""]);
  given.push(["memory", `'${state.memory} GB'`]);
  return `figgen schedule ${name} ${given.map(([key, value]) => `--${key}${value === "" ? "" : ` ${value}`}`).join(" ")}`;
}
