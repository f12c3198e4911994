// What would be better, and what one more unit of each input buys: real variants through the
// engine, nothing canned. Pure: the caller evaluates `candidatesOf` and `unitsOf` when it has time.

import { microbatches_for_efficiency } from "../step-formulas.js";
import { LABELS, changesText, resolvedOf } from "./changes.js";
import { OWN, SCALES } from "./modeler_state.js";
import { fullestOf } from "./modeler_model.js";
import { percent, plainNumber, quantity } from "./quantities.js";

/** Share of the wall below which a pipeline is said to waste time. */
export const ENOUGH = 0.8;
const GAIN = 0.005; // of the throughput: less is not worth a sentence

/** Variants that may help, as { changes, about }; those of the pipeline come first. */
export function candidatesOf(now) {
  const { setup, pipeline } = now;
  const at = resolvedOf(now);
  const found = [];
  const put = (changes, about = "") => {
    const same = Object.entries(changes).every(([key, value]) => now.state[key] === value || at[key] === value);
    if (!same) found.push({ changes, about });
  };
  if (pipeline.stages > 1) {
    put({ microbatches: 2 * at.microbatches }, "pipeline");
    const stages = fewerStages(at);
    if (stages) put(stages, "pipeline");
    const least = leastMicrobatches(pipeline);
    if (least && least < 2 * at.microbatches) put({ microbatches: least }, "least");
    for (const schedule of ["interleaved-1f1b", "zb1p", "zbv"]) {
      put({ schedule, chunks: schedule === "interleaved-1f1b" ? Math.max(2, at.chunks) : null });
    }
    if (at.schedule === "interleaved-1f1b") put({ chunks: 2 * at.chunks });
  }
  for (const recompute of ["none", "selective", "full"]) put({ recompute });
  for (const zero of ["1", "2", "3"]) if (Number(zero) > Number(at.zero)) put({ zero });
  for (const key of ["sp", "flash", "overlap", "double"]) if (!at[key]) put({ [key]: true });
  if (at.tp > 1) put({ tp: at.tp / 2 });
  put({ tp: 2 * at.tp });
  put({ pp: 2 * at.pp });
  if (at.pp > 1) put({ pp: at.pp / 2 });
  put({ cp: 2 * at.cp });
  if (at.cp > 1) put({ cp: at.cp / 2 });
  if (setup.shape.experts) for (const ep of [2 * at.ep, at.ep / 2]) if (ep >= 1) put({ ep });
  if (at.microbatches % 2 === 0) put({ microbatch_size: 2 * at.microbatch_size, microbatches: at.microbatches / 2 });
  if (at.microbatch_size % 2 === 0) put({ microbatch_size: at.microbatch_size / 2, microbatches: 2 * at.microbatches });
  const whole = ({ changes }) =>
    Object.values(changes).every((value) => typeof value !== "number" || Number.isInteger(value));
  return found.filter(whole);
}

// One stage less, on as many nodes as it then takes.
function fewerStages({ nodes, gpus, tp, cp, pp }) {
  if (pp < 2) return null;
  const part = tp * cp * (pp - 1);
  for (let step = 0; step < nodes; step++) {
    for (const count of [nodes - step, nodes + step]) {
      if (count < 1 || (count * gpus) % part) continue;
      return { pp: pp - 1, ...(step && { nodes: count }) };
    }
  }
  return null;
}

/** The fewest microbatches with which this pipeline is `ENOUGH` efficient, or null. */
export function leastMicrobatches({ schedule, stages, chunks, efficiency, microbatches }) {
  if (efficiency >= ENOUGH || !["1f1b", "gpipe", "interleaved-1f1b"].includes(schedule)) return null;
  // The formula is in floats: 12.000000000000002 is 12.
  const least = microbatches_for_efficiency({ stages, chunks, efficiency: ENOUGH });
  const whole = Math.max(Math.ceil(least - 1e-9), chunks > 1 ? stages : 1);
  return whole > microbatches ? whole : null;
}

/**
 * What to change, best first: { changes, text, reasons, gain, fits }. `tried` are candidates with
 * `found`, what the engine says of them.
 */
export function recommend(now, tried, most = 6) {
  const needed = now.memory.fits === false;
  const rows = tried.filter(({ found }) => found && !found.error).map((one) => compared(now, one));
  if (needed) {
    const fitting = rows.filter(({ fits }) => fits !== false).sort((a, b) => b.gain - a.gain);
    return fitting.slice(0, most).map((row) => ({ ...row, reasons: ["it fits", ...row.reasons] }));
  }
  const useful = rows.filter(
    ({ fits, gain, about }) =>
      fits !== false && (gain > GAIN || (about === "pipeline" && now.pipeline.efficiency < ENOUGH)),
  );
  const first = (row) => (now.pipeline.efficiency < ENOUGH && row.about ? (row.about === "pipeline" ? 2 : 1) : 0);
  useful.sort((a, b) => first(b) - first(a) || b.gain - a.gain);
  const kept = useful.filter(({ about, gain }) => about !== "least" || gain > GAIN);
  return kept.slice(0, most);
}

function compared(now, { changes, about, found }) {
  const gain = found.step.tokens_per_s_per_gpu / now.step.tokens_per_s_per_gpu - 1;
  const reasons = [];
  const moved = (name, of, decimals = 1) => {
    const [before, after] = [percent(of(now), decimals), percent(of(found), decimals)];
    if (before !== after) reasons.push(`${name} ${before} → ${after}`);
  };
  moved("pipeline efficiency", ({ pipeline }) => pipeline.efficiency);
  moved("MFU", ({ step }) => step.model_flops_utilisation);
  const [before, after] = [fullestOf(now).total_bytes, fullestOf(found).total_bytes];
  if (Math.abs(after - before) > 5e7) reasons.push(`fullest GPU ${quantity(before, "B")} → ${quantity(after, "B")}`);
  const [batch, other] = [now.setup.global_batch, found.setup.global_batch];
  if (batch !== other) reasons.push(`global batch ${plainNumber(batch)} → ${plainNumber(other)}`);
  return {
    changes,
    about,
    gain,
    reasons,
    fits: found.memory.fits,
    text: changesText(now.state, changes, resolvedOf(now)),
  };
}

/** One more unit of each input: { label, from, to, changes: the states to try, first that works }. */
export function unitsOf(now, catalog) {
  const { setup } = now;
  const at = resolvedOf(now);
  const rows = [];
  const whole = (key, options) => {
    const tries = options.filter((value) => value !== at[key]).map((value) => ({ [key]: value }));
    if (tries.length)
      rows.push({ key, label: LABELS[key], tries, name: (changes) => changesText(now.state, changes, at) });
  };
  const above = (value, most = 8) => [...Array(most)].map((_, step) => value + step + 1);
  whole("microbatches", [...above(at.microbatches), 2 * at.microbatches]);
  whole("microbatch_size", above(at.microbatch_size, 2));
  whole("nodes", [...above(at.nodes, 16), 2 * at.nodes]);
  for (const key of ["tp", "pp", "cp"]) whole(key, [...above(at[key], 4), 2 * at[key]]);
  if (setup.shape.experts) whole("ep", [...above(at.ep, 4), 2 * at.ep]);
  if (["interleaved-1f1b", "looped-bfs"].includes(at.schedule)) whole("chunks", above(at.chunks, 4));
  whole("sequence", [at.sequence + 1024, at.sequence + 4096, 2 * at.sequence]);
  whole("efficiency", [Math.min(1, Math.round(100 * at.efficiency + 1) / 100)]);
  const own = ownHardware(now, catalog);
  const scaled = (key, label, unit) => {
    const changes = { ...own(key), [key]: own(key)[key] * 1.1 };
    const [from, to] = [own(key)[key], changes[key]].map((value) => quantity(value * SCALES[key], unit));
    rows.push({ key, label, tries: [changes], name: () => `${label} ${from} → ${to}` });
  };
  scaled("peak", "peak of a GPU", "FLOP/s");
  scaled("up", "links inside a node", "B/s");
  scaled("net", "links between nodes", "B/s");
  return rows;
}

// The hardware of a configuration as the reader's own numbers.
function ownHardware({ state, setup: { cluster, capacity_bytes } }) {
  const chip = {
    chip: OWN,
    peak: cluster.peak_flops_per_s / SCALES.peak,
    hbm: (capacity_bytes ?? 80e9) / SCALES.hbm,
    up: cluster.scale_up_bandwidth_bytes_per_s / SCALES.up,
  };
  const nic = { nic: OWN, net: cluster.network_bandwidth_bytes_per_s / SCALES.net };
  return (key) => (key === "net" ? nic : state.chip === OWN ? { [key]: chip[key] } : chip);
}

/** What a unit bought: changes of throughput per GPU, of step time, of the fullest GPU. */
export function bought(now, found) {
  return {
    throughput: found.step.tokens_per_s_per_gpu / now.step.tokens_per_s_per_gpu - 1,
    step_time: found.step.step_time_s / now.step.step_time_s - 1,
    memory_bytes: fullestOf(found).total_bytes - fullestOf(now).total_bytes,
    fits: found.memory.fits,
  };
}
