// Finds better configurations, and the gain of one more unit of each input, by computing variants with
// the engine. Pure: the caller evaluates the variants when it has time.

import { SMALL } from "../scenarios/options/option_values.js";
import { microbatches_for_efficiency } from "../step-formulas.js";
import { changesText, nameOf, resolvedOf } from "./changes.js";
import { fullestOf, mfuOf } from "./modeler_model.js";
import { OWN, SCALES, replicasOf } from "./modeler_state.js";
import { bytes, percent, plainNumber, quantity } from "./quantities.js";

/** Share of the wall time above which a pipeline counts as wasting time. */
export const ENOUGH = 0.8;
const GAIN = 0.005; // of the throughput: smaller gains are not worth a sentence
const BEHIND = 0.2; // changes that gain this much less than the best are no alternatives
const CHUNKS = [2, 3, 4, 5, 6, 8, 10, 12, 16];

// `changes` of a layout, with the number of microbatches that keeps the global batch, if there is one.
function kept(at, changes) {
  const factor = replicasOf(at) / replicasOf({ ...at, ...changes });
  const [microbatches, microbatch_size] = [at.microbatches * factor, at.microbatch_size * factor];
  if (Number.isInteger(microbatches)) return { ...changes, microbatches };
  return Number.isInteger(microbatch_size) ? { ...changes, microbatch_size } : changes;
}

const LAID = ["tp", "pp", "cp", "nodes"];
const isWhole = (value) => typeof value !== "number" || (Number.isInteger(value) && value >= 1);

/** Variants that may help, as { changes, kind }; only the best of each kind is worth showing. */
export function candidatesOf(now) {
  const { setup, pipeline } = now;
  const at = resolvedOf(now);
  const found = [];
  const put = (kind, changes) => {
    const same = Object.entries(changes).every(([key, value]) => at[key] === value);
    if (!same && Object.values(changes).every(isWhole)) found.push({ kind, changes });
  };
  if (pipeline.stages > 1) {
    put("microbatches", { microbatches: 2 * at.microbatches });
    put("least", { microbatches: leastMicrobatches(pipeline) ?? at.microbatches });
    put("stages", fewerStages(at) ?? {});
    for (const changes of schedulesFor(now, at)) put(changes.schedule, changes);
  }
  const parts = setup.shape.experts ? [SMALL] : [];
  for (const recompute of ["none", "selective", ...parts, "full"]) put("recompute", { recompute });
  for (const zero of ["1", "2", "3"]) put("zero", { zero });
  if (at.cp > 1) for (const exchange of ["p2p", "all-gather"]) put("exchange", { exchange });
  for (const key of ["sp", "flash", "overlap", "double"]) if (!at[key]) put(key, { [key]: true });
  for (const factor of [0.5, 2]) {
    for (const axis of ["tp", "pp", "cp"]) put(axis, kept(at, { [axis]: factor * at[axis] }));
    put("tp pp", { tp: factor * at.tp, pp: at.pp / factor });
    put("tp cp", { tp: factor * at.tp, cp: at.cp / factor });
    if (setup.shape.experts) put("ep", { ep: factor * at.ep });
    put("size", { microbatch_size: factor * at.microbatch_size, microbatches: at.microbatches / factor });
  }
  if (setup.parallel.etp > 1) put("etp", { etp: 1, ep: setup.parallel.etp * at.ep });
  if (now.step.gradient_buckets) put("buckets", { buckets: now.step.gradient_buckets.best_buckets });
  return found;
}

function schedulesFor({ setup, memory }, { schedule, pp }) {
  const short = memory.fits === false ? ["v-half", "v-min"] : [];
  const experts = setup.shape.experts ? ["dualpipev"] : [];
  const others = ["1f1b", "zb1p", "zbv", ...short, ...experts].filter((name) => name !== schedule);
  const chunked = CHUNKS.filter((chunks) => chunks * pp <= setup.shape.layers);
  return [
    ...others.map((name) => ({ schedule: name, chunks: null })),
    ...chunked.map((chunks) => ({ schedule: "interleaved-1f1b", chunks })),
  ];
}

// One stage less, on as many nodes as that requires.
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
  // Formulas compute with floats: 12.000000000000002 means 12.
  const least = microbatches_for_efficiency({ stages, chunks, efficiency: ENOUGH });
  const whole = Math.max(Math.ceil(least - 1e-9), chunks > 1 ? stages : 1);
  return whole > microbatches ? whole : null;
}

/** Pairs of changes that save memory, for a configuration that does not fit. */
export function pairsOf(now) {
  if (now.memory.fits !== false) return [];
  const at = resolvedOf(now);
  const savers = [
    { zero: "2" },
    { zero: "3" },
    { recompute: "selective" },
    ...(now.setup.shape.experts ? [{ recompute: SMALL }] : []),
    { recompute: "full" },
    { pp: 2 * at.pp },
    { tp: 2 * at.tp },
    { cp: 2 * at.cp },
    { ep: 2 * at.ep },
    { microbatch_size: at.microbatch_size / 2, microbatches: 2 * at.microbatches },
    { schedule: "1f1b", chunks: null },
    { schedule: "v-half", chunks: null },
  ].filter((changes) => {
    const saves = ([key, value]) => (key === "zero" ? value > at.zero : key !== "chunks" && value !== at[key]);
    return Object.entries(changes).some(saves) && Object.values(changes).every(isWhole);
  });
  const pairs = savers.flatMap((one, index) => savers.slice(index + 1).map((other) => [one, other]));
  const larger = { nodes: 2 * at.nodes };
  const spread = ["pp", "tp", "cp"].map((axis) => [larger, { [axis]: 2 * at[axis] }]);
  return [[larger, {}], ...pairs, ...spread]
    .filter(([one, other]) => Object.keys(one).every((key) => !(key in other)))
    .map(([one, other]) => {
      const changes = { ...one, ...other };
      const laid = Object.keys(changes).some((key) => LAID.includes(key)) && !("microbatches" in changes);
      return { kind: Object.keys(changes).join(" "), changes: laid ? kept(at, changes) : changes };
    });
}

/**
 * What to change, best first: { changes, text, reasons, gain, fits, same }; `same` are those that
 * leave the GPUs and the global batch unchanged. `tried` are candidates with `found`, the engine's
 * results. If the configuration does not fit, only candidates that fit are recommended.
 */
export function recommend(now, tried, most = 5) {
  const needed = now.memory.fits === false;
  const few = ({ changes }) => Object.keys(changes).length;
  const steps = ({ gain }) => Math.round(gain / GAIN);
  const rows = tried
    .filter(({ found }) => found && !found.error && found.memory.fits !== false)
    .map((one) => compared(now, one))
    .filter(({ gain }) => needed || gain > GAIN)
    .sort((one, other) => steps(other) - steps(one) || few(one) - few(other));
  // A pair of changes is dropped if one of them alone is as good.
  const partly = (row) => (other) =>
    few(other) < few(row) &&
    other.gain > row.gain - GAIN &&
    Object.entries(other.changes).every(([key, value]) => row.changes[key] === value);
  const [shown, kinds] = [[], new Set()];
  for (const row of rows) {
    const beside = shown.filter(({ same }) => same === row.same);
    const behind = needed && beside.length && beside[0].gain - row.gain > BEHIND;
    if (kinds.has(row.kind) || behind || beside.length >= most || rows.some(partly(row))) continue;
    kinds.add(row.kind);
    shown.push(row);
  }
  return shown;
}

function compared(now, { changes, kind, found }) {
  const reasons = [];
  const moved = (name, of, how) => {
    const [before, after] = [of(now), of(found)];
    if (before !== after) reasons.push({ name, before, after, how });
  };
  moved("pipeline efficiency", ({ pipeline }) => percent(pipeline.efficiency), "efficiency");
  moved("MFU", (one) => percent(mfuOf(one)), "mfu");
  if (Math.abs(fullestOf(found).total_bytes - fullestOf(now).total_bytes) > 5e7) {
    moved("fullest GPU", (one) => bytes(fullestOf(one).total_bytes), "fullest");
  }
  moved("global batch", ({ setup }) => plainNumber(setup.global_batch), "batch");
  const crosses = ({ state: { tp, gpus } }) => tp > gpus;
  if (crosses(found) && !crosses(now)) reasons.push({ name: "TP groups leave their node" });
  return {
    changes,
    kind,
    found,
    reasons,
    gain: found.step.tokens_per_s_per_gpu / now.step.tokens_per_s_per_gpu - 1,
    fits: found.memory.fits,
    same: now.setup.global_batch === found.setup.global_batch && now.step.world_size === found.step.world_size,
    text: changesText(now.state, changes, resolvedOf(now)),
  };
}

/** One more unit of each input: { label, tries: the changes to try, first that works, name(changes) }. */
export function unitsOf(now, catalog) {
  const { setup } = now;
  const at = resolvedOf(now);
  const rows = [];
  const whole = (key, options) => {
    const laid = LAID.includes(key) && key !== "nodes";
    const tries = options
      .filter((value) => value !== at[key])
      .map((value) => (laid ? kept(at, { [key]: value }) : { [key]: value }));
    if (tries.length)
      rows.push({ label: nameOf(key), tries, name: (changes) => changesText(now.state, changes, at) });
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
  const scaled = (key, label, unit, factor) => {
    const changes = { ...own(key), [key]: own(key)[key] * factor };
    const [from, to] = [own(key)[key], changes[key]].map((value) => quantity(value * SCALES[key], unit));
    if (from !== to) rows.push({ label, tries: [changes], name: () => `${label} ${from} → ${to}` });
  };
  scaled("peak", "peak of a GPU", "FLOP/s", 1.1);
  scaled("up", "links inside a node", "B/s", 1.1);
  scaled("net", "links between nodes", "B/s", 1.1);
  scaled("alpha_up", "latency inside a node", "s", 0.9);
  scaled("alpha_net", "latency between nodes", "s", 0.9);
  return rows;
}

// The hardware of a configuration as the reader's own numbers.
function ownHardware({ state, job: { cluster, capacity_bytes } }) {
  const chip = {
    chip: OWN,
    measured: null, // its numbers are already included
    bw: null, // and its share of the peak is the configuration's
    peak: cluster.peak_flops_per_s / SCALES.peak,
    hbm: (capacity_bytes ?? 80e9) / SCALES.hbm,
    up: cluster.scale_up_bandwidth_bytes_per_s / SCALES.up,
  };
  const alone = {
    net: { nic: OWN, net: cluster.network_bandwidth_bytes_per_s / SCALES.net },
    alpha_up: { alpha_up: cluster.scale_up_latency_s / SCALES.alpha_up },
    alpha_net: { alpha_net: cluster.network_latency_s / SCALES.alpha_net },
  };
  if (state.measured) return (key) => ({ ...chip, ...alone.net, ...alone[key] });
  return (key) => alone[key] ?? (state.chip === OWN ? { [key]: chip[key] } : chip);
}

/** The effects of one more unit: changes of throughput per GPU, of step time, of the fullest GPU. */
export function bought(now, found) {
  return {
    throughput: found.step.tokens_per_s_per_gpu / now.step.tokens_per_s_per_gpu - 1,
    step_time: found.step.step_time_s / now.step.step_time_s - 1,
    memory_bytes: fullestOf(found).total_bytes - fullestOf(now).total_bytes,
    fits: found.memory.fits,
  };
}
