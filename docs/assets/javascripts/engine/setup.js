// A training step as configured, checked, with everything that follows from it alone; mirrors
// figgen.models.setup.training_setup, stage_layers and what figgen.commands makes of its options.

import { InputError, checkMost, product, unknown } from "./errors.js";
import { MOST_RANKS, layout } from "./layout.js";
import { linksOf, readRates } from "./measured.js";
import { checkSize } from "./mesh.js";
import { range, sum } from "./orders.js";
import { activationFormat, recomputation } from "./recomputation.js";
import { build } from "./schedule.js";
import { FFN_MATRICES, mixerLayers, modelShape, windowedLayers } from "./transformer.js";

export const ZERO_STAGES = [0, 1, 2, 3];
export const CONTEXT_EXCHANGES = ["p2p", "all-gather"];
const MOST_MTP_LAYERS = 16;
const MOST_TOKENS = 2 ** 40;
/** Share of the peak on hardware that nobody timed. */
export const UNTIMED = 0.5;
const NARROW = ["fp8", "fp4"];
// Beyond it no quantity of this field is meant.
const MOST = 1e24;

/** B/s of a chip of the reader's own that does not say it. */
export const USUAL_MEMORY = 3.35e12;

// Catalog → defaults.
const usual = new WeakMap();
/** What is taken where an option is left out, by name; null follows from other options. */
export function usualOf(catalog) {
  if (!usual.has(catalog)) {
    const value = ({ default: given }) => (given === undefined || given?.length === 0 ? null : given);
    usual.set(catalog, Object.fromEntries(catalog.options.map((option) => [option.name, value(option)])));
  }
  return usual.get(catalog);
}

/**
 * The setup of `choices`, named as the catalog's options, with `model`, `nodes` and `gpus_per_node`. `model`,
 * `accelerator` and `nic` are keys of the catalog, or own numbers: a shape as `modelShape` takes
 * it, { peak_flops_per_s, memory_bytes, memory_bandwidth_bytes_per_s, scale_up_bandwidth_bytes_per_s,
 * scale_up_latency_s?, scale_up_domain? } and { bandwidth_bytes_per_s }. Throws InputError as the command line would, in its order.
 */
export function untimedSetup(catalog, choices) {
  const given = { ...usualOf(catalog) };
  for (const name in choices) if (choices[name] !== undefined) given[name] = choices[name];
  for (const name of ["order", "recipe", "schedule", "dtype", "recompute", "activations", "software", "lora_matrices", "frozen_weights"]) {
    given[name] = String(given[name]);
  }
  const [model, shape] = named("model", given.model, catalog.models);
  const parallel = keptLayout(given);
  const setup = trainingSetup(given, modelShape(shape), parallel, catalog);
  return { ...setup, model, software: given.software, ...hardware(catalog, given, parallel) };
}

// A catalog's entry with its key, or own numbers under the name "own".
function named(kind, wanted, known) {
  if (wanted !== null && typeof wanted === "object") return ["own", wanted];
  if (!Object.hasOwn(known, wanted)) throw unknown(kind, String(wanted), Object.keys(known));
  return [wanted, known[wanted]];
}

function hardware(catalog, given, { gpus_per_node }) {
  const { dtype, reserve_bytes } = given;
  const compute_efficiency = given.compute_efficiency ?? given.untimed ?? UNTIMED;
  const [accelerator, chip] = named("accelerator", given.accelerator, catalog.accelerators);
  if (gpus_per_node > (chip.scale_up_domain ?? Infinity)) {
    const expected = `at most ${chip.scale_up_domain}, the scale-up domain of ${accelerator}`;
    throw new InputError("gpus_per_node", { expected, got: gpus_per_node });
  }
  const peaks = chip.peaks ?? { [dtype]: chip.peak_flops_per_s };
  checkPeak(accelerator, peaks, dtype);
  const [nic, link] = named("link", given.nic, catalog.links);
  const measured = given.measured === null ? null : readRates(String(given.measured));
  const links = measured ? linksOf(measured) : {};
  const cluster = {
    peak_flops_per_s: peaks[dtype],
    scale_up_bandwidth_bytes_per_s: chip.scale_up_bandwidth_bytes_per_s,
    network_bandwidth_bytes_per_s:
      link.per === "node" ? link.bandwidth_bytes_per_s / gpus_per_node : link.bandwidth_bytes_per_s,
    scale_up_latency_s: chip.scale_up_latency_s ?? catalog.latencies.scale_up_s,
    network_latency_s: catalog.latencies.network_s,
    memory_bandwidth_bytes_per_s: chip.memory_bandwidth_bytes_per_s ?? USUAL_MEMORY,
    ...links,
  };
  for (const name of ["scale_up_latency_s", "network_latency_s"]) cluster[name] = given[name] ?? cluster[name];
  for (const [name, got] of Object.entries(cluster)) {
    if (name.endsWith("latency_s")) positive(`${name} of a cluster`, got, { zero: true });
    else positive(`${name} of a cluster`, got, { least: 1 });
  }
  if (!(isNumber(compute_efficiency) && compute_efficiency > 0 && compute_efficiency <= 1)) {
    const expected = "above 0, at most 1";
    throw new InputError("compute_efficiency", { expected, got: compute_efficiency });
  }
  positive("compute_efficiency", compute_efficiency, { least: 1e-9 });
  const capacity_bytes = measured?.capacity?.[0] ?? chip.memory_bytes ?? null;
  positive("reserve_bytes", reserve_bytes, { zero: true });
  if (capacity_bytes !== null) positive("capacity_bytes", capacity_bytes);
  const { memory_bandwidth_bytes_per_s } = chip;
  // Muon's products are in 16 bits at least.
  const wide_peak_flops_per_s = NARROW.includes(dtype) ? peaks.bf16 ?? peaks[dtype] : peaks[dtype];
  return { accelerator, nic, cluster, wide_peak_flops_per_s, compute_efficiency, capacity_bytes, reserve_bytes, measured, dtype, memory_bandwidth_bytes_per_s };
}

/** Refuses a format that a chip with these `peaks` does not multiply. */
export function checkPeak(accelerator, peaks, dtype) {
  if (Object.hasOwn(peaks, dtype)) return;
  const what = `${accelerator} has no dense ${dtype} matrix peak`;
  throw new InputError(what, { expected: Object.keys(peaks).join(" or "), got: dtype });
}

const isNumber = (got) => typeof got === "number" && Number.isFinite(got);

// Refuses what is no number, no amount, or so small or large that times would overflow.
function positive(what, got, { zero = false, least = 0 } = {}) {
  if (!isNumber(got) || !(zero ? got >= 0 : got > 0)) {
    throw new InputError(what, { expected: zero ? ">= 0" : "> 0", got });
  }
  if (got < least) throw new InputError(what, { expected: `at least ${least}`, got });
  if (got > MOST) throw new InputError(what, { expected: "at most 1e24", got });
}

function trainingSetup(given, shape, parallel, { software, frameworks, recipes, frozen }) {
  const { schedule, chunks, recompute, zero_stage, context_exchange } = given;
  const { microbatch_size, sequence_parallel, flash_attention, buckets, layers_per_stage, dropout } = given;
  const { overlap_data_parallel, double_buffering, activations, mtp_layers, lora_rank, lora_matrices, frozen_weights } = given;
  const sequence = given.sequence ?? shape.sequence;
  const microbatches = microbatchesOf(given, parallel);
  for (const [name, size] of Object.entries({ microbatches, sequence, microbatch_size })) {
    checkSize(name, size);
  }
  checkMost("tokens of a microbatch", product(sequence, microbatch_size), MOST_TOKENS);
  if (buckets !== null) checkMost("buckets", checkSize("buckets", buckets), MOST_RANKS);
  const [, used] = named("recipe", given.recipe, recipes);
  for (const [name, got, known] of [
    ["zero_stage", zero_stage, ZERO_STAGES],
    ["context_exchange", context_exchange, CONTEXT_EXCHANGES],
  ]) {
    if (!known.includes(got)) throw new InputError(name, { expected: known.join(" or "), got });
  }
  if (!(Number.isInteger(mtp_layers) && mtp_layers >= 0 && mtp_layers <= MOST_MTP_LAYERS)) {
    throw new InputError("mtp_layers", { expected: `0 to ${MOST_MTP_LAYERS}`, got: mtp_layers });
  }
  const recomputed = recomputation(recompute);
  const format = activationFormat(activations);
  const [framework, framework_memory] = named("framework", named("software", given.software, software)[1], frameworks);
  const frozen_format = checkAdapters(given, shape, format, frozen);
  checkDivision(shape, parallel, sequence, sequence_parallel);
  const order = keptSchedule(schedule, parallel.pp, microbatches, chunks);
  const { placement } = order;
  checkStages(shape.layers, layers_per_stage, placement.depth);
  const { tp, cp, dp, pp } = parallel;
  const tokens = (microbatch_size * sequence) / cp;
  return {
    shape, parallel, microbatches, sequence, microbatch_size, schedule, recipe: used, zero_stage,
    recompute, recomputed, activations, format, sequence_parallel, flash_attention, dropout, context_exchange,
    buckets, overlap_data_parallel, double_buffering, layers_per_stage, mtp_layers, lora_rank, lora_matrices, frozen_weights, frozen_format,
    framework, framework_memory, order, placement, tokens,
    split_tokens: sequence_parallel ? tokens / tp : tokens,
    global_batch: microbatches * microbatch_size * dp,
    tokens_per_step: microbatches * microbatch_size * dp * sequence,
    dense_data_axis: cp > 1 ? "dp-cp" : "dp",
    dense_shards: dp * cp,
    sharded: shardingOf(given, framework_memory, zero_stage, pp),
    kv_heads_per_rank: Math.max(1, Math.floor(shape.kv_heads / tp)),
    shares: virtualStageShares(shape, placement, layersGiven(layers_per_stage, shape, placement, framework_memory), mtp_layers),
    stagesOf: range(pp).map((rank) =>
      range(placement.stages).filter((stage) => placement.rank_of_stage[stage] === rank)),
    passing: Math.floor(microbatches / placement.pipes),
  };
}

/** What ZeRO sends in every microbatch, and whether behind computing. */
export function shardingOf({ overlap_data_parallel, double_buffering }, { whole_in_pipeline }, zero_stage, pp) {
  const often = whole_in_pipeline && pp > 1 ? 0 : zero_stage;
  const gathers = often === 3 ? 2 : 0;
  return { gathers, scatters: +(often >= 2), overlapped: +(overlap_data_parallel && (double_buffering || !gathers)) };
}

function microbatchesOf({ microbatches, global_batch, microbatch_size }, { dp, pp }) {
  if (global_batch === null) return microbatches ?? 4 * pp;
  const share = dp * checkSize("microbatch_size", microbatch_size);
  if (checkSize("global_batch", global_batch) % share) {
    const expected = `a multiple of dp · microbatch_size = ${share}`;
    throw new InputError("global_batch", { expected, got: global_batch });
  }
  return global_batch / share;
}

// The format of frozen weights. Adapters that nobody makes, and frozen weights where all are trained.
function checkAdapters({ lora_rank, lora_matrices: which, frozen_weights, activations, mtp_layers }, { hidden, latent, state_space }, format, { formats, matrices, not_adapted }) {
  const [, found] = named("frozen_weights", frozen_weights, formats);
  if (!matrices.includes(which)) throw unknown("lora_matrices", which, matrices);
  if (lora_rank === null) {
    const expected = "16-bit without lora_rank";
    if (found.weight_bytes < 2) throw new InputError("frozen_weights", { expected, got: frozen_weights });
    return found;
  }
  checkMost("lora_rank", checkSize("lora_rank", lora_rank), hidden);
  const refused = state_space ? "mixers" : mtp_layers ? "mtp_layers" : null;
  if (refused) throw new InputError("lora_rank", { expected: not_adapted[refused], got: lora_rank });
  if (which === "query-value" && latent) {
    const expected = "attention or all-linear, with latent attention";
    throw new InputError("lora_matrices", { expected, got: which });
  }
  if (format.linear < 2) throw new InputError("activations", { expected: "16-bit with lora_rank", got: activations });
  return found;
}

// Widths that the axes do not divide, and experts that nobody lays out.
function checkDivision(shape, parallel, sequence, sequence_parallel) {
  const { tp, cp, ep, etp } = parallel;
  const { experts, kv_heads: kv, state_space: mixers } = shape;
  const divides = (what, size, axis, ways) => {
    if (size % ways) throw new InputError(what, { expected: `a multiple of ${axis}=${ways}`, got: size });
  };
  divides("sequence", sequence, "cp", cp);
  divides("heads of the model", shape.heads, "tp", tp);
  if (kv % tp && tp % kv) {
    const expected = `a multiple or divisor of tp=${tp}`;
    throw new InputError("kv_heads of the model", { expected, got: kv });
  }
  if (shape.dense_layers) divides("ffn_hidden of the model", shape.ffn_hidden, "tp", tp);
  if (sequence_parallel) divides("tokens of a context-parallel rank", sequence / cp, "tp", tp);
  if (mixers) {
    // What Megatron-LM's mixer asserts.
    divides("groups of a mixer", mixers.groups, "tp", tp);
    divides("heads of a mixer on a rank", Math.floor(mixers.mixer_heads / tp), "cp", cp);
    const got = Math.floor(mixers.groups / tp);
    if (got % cp && cp % got) {
      throw new InputError("groups of a mixer on a rank", { expected: `a multiple or divisor of cp=${cp}`, got });
    }
  }
  if (!experts) {
    if (ep > 1) throw new InputError("ep", { expected: "1, the model has no experts", got: ep });
    return;
  }
  if (!parallel.has_experts) {
    throw new InputError(`order '${parallel.order}' lays out no experts`, { expected: "ep in it" });
  }
  divides("experts of the model", experts.count, "ep", ep);
  divides("ffn_hidden of an expert", experts.ffn_hidden, "etp", etp);
  if (experts.shared) divides("ffn_hidden of a shared expert", experts.ffn_hidden, "tp", tp);
  if (tp > 1 && !sequence_parallel) {
    throw new InputError("experts under tensor parallelism", { expected: "sequence parallelism too" });
  }
}

// More stages than layers only where it is said which stages stay empty, or the two ends do.
function checkStages(layers, given, depth) {
  if (given === null) {
    const least = Math.max(1, depth - 2);
    if (layers >= least) return;
    const expected = `at least ${least}, one per stage between the two ends`;
    throw new InputError("layers of the model", { expected, got: layers });
  }
  const whole = Array.isArray(given) && given.length === depth
    && given.every((count) => Number.isInteger(count) && count >= 0);
  if (!whole || sum(given) !== layers) {
    const expected = `${depth} counts, together ${layers}`;
    throw new InputError("layers_per_stage", { expected, got: given });
  }
}

function layersGiven(layers_per_stage, shape, { depth }, { balanced }) {
  if (layers_per_stage !== null) return [layers_per_stage];
  return balanced ? layersByCost(shape, depth) : [null];
}

// Layers of stages, and the head's stage: blocks dealt until a stage passes its share of the cost.
export function layersByCost(shape, stages) {
  const width = shape.heads * shape.head_dim;
  const layer = 4 * width * shape.hidden + FFN_MATRICES[shape.ffn] * shape.ffn_hidden * shape.hidden;
  const whole = shape.layers * layer + shape.vocab * shape.hidden;
  const passed = (blocks, stage) => stage + (blocks * layer * stages > whole * (stage + 1) && stage < stages - 1);
  const dealt = Array(stages).fill(0);
  let stage = 0;
  for (let index = 0; index < shape.layers; index++) {
    dealt[stage]++;
    stage = passed(index + 1, stage);
  }
  return [dealt, passed(shape.layers, stage)];
}

// Most layers of a pipeline rank and the layers beside the head, whose rank counts apart where stages are cut.
export function fullestAndBesideHead(shares, ranks, cut) {
  const held = range(ranks).map((rank) =>
    sum(shares.filter((_, stage) => stage % ranks === rank).map((share) => share.layers - share.mtp_layers)));
  if (!cut || ranks < 2) return [Math.max(...held), sum(held) / ranks];
  const [beside] = held.splice(shares.findIndex((share) => share.head) % ranks, 1);
  return [Math.max(...held), beside];
}

// Layers of stages as even as they go; what does not divide goes to stages inside the pipeline first.
function layersOfStages(layers, depth) {
  const inner = range(depth).filter((stage) => stage > 0 && stage < depth - 1);
  const fuller = [...inner, 0, depth - 1].slice(0, layers % depth);
  return range(depth).map((stage) => Math.floor(layers / depth) + fuller.includes(stage));
}

// Beside modules that predict more tokens is what is left where all others have the most of an even cut.
function layersBesideMtp(layers, depth) {
  if (depth === 1) return [layers];
  const last = Math.max(0, layers - Math.ceil(layers / depth) * (depth - 1));
  return [...layersOfStages(layers - last, depth - 1), last];
}

// Shares of stages, with layers as said or as is usual.
export function virtualStageShares(shape, { depth, pipes }, [given, last = depth - 1], mtp = 0) {
  const counts = given ?? (mtp ? layersBesideMtp : layersOfStages)(shape.layers, depth);
  let first = 0;
  const shares = counts.map((own, stage) => {
    const head = stage === last;
    const mtp_layers = head ? mtp : 0;
    const after = first + own;
    const expert_layers = shape.experts
      ? Math.max(0, after - Math.max(first, shape.dense_layers)) + mtp_layers : 0;
    const [first_layer, windowed_layers] = [first, windowedLayers(shape, first, own)];
    first = after;
    const layers = own + mtp_layers;
    const dense_layers = layers - expert_layers;
    const mixer_layers = mixerLayers(shape, first_layer, own);
    return { first_layer, windowed_layers, mixer_layers, layers, expert_layers, dense_layers, mtp_layers, embedding: stage === 0, head };
  });
  return range(pipes).flatMap(() => shares);
}

// The last things made, by key: sensitivities ask for the same layout and schedule again and again.
function kept(most) {
  const made = new Map();
  return (key, make) => {
    if (!made.has(key)) {
      if (made.size >= most) made.delete(made.keys().next().value);
      made.set(key, make());
    }
    return made.get(key);
  };
}
// Not JSON, to which NaN is null.
const keyOf = (values) => values.map((value) => `${typeof value} ${value}`).join();
const [layouts, schedules] = [kept(64), kept(32)];

function keptLayout({ nodes, gpus_per_node, tp, cp, pp, ep, etp, dp, order }) {
  const sizes = { nodes, gpus_per_node, tp, cp, pp, ep, etp, dp, order };
  return layouts(keyOf(Object.values(sizes)), () => layout(sizes));
}

function keptSchedule(name, stages, microbatches, chunks) {
  const key = keyOf([name, stages, microbatches, chunks]);
  return schedules(key, () => build(name, { stages, microbatches, chunks }));
}
