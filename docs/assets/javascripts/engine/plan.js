// Every layout of a job: those that fit by predicted time; mirrors figgen.models.plan, plan_sizes and
// figgen.scenarios.planner. Time and memory themselves are printed from Python.

import { TABLES, rank_bytes } from "../plan-memory.js";
import { timed_step } from "../timed-step.js";
import { layerGradientBytes, lossBytes, mixerBytes, recomputedBytes, stageBytes } from "./activations.js";
import { InputError } from "./errors.js";
import { layerHeld, mixerMore, projectionHeld, tableHeld } from "./held.js";
import { keyValueWidth } from "./memory.js";
import { attainedOf, classOf, filling, ratesOf, shapeNumbers } from "./predicted.js";
import { alike, divisors, meshes, pipelines, rankLoads, schedules, sharding } from "./plan_space.js";
import { recomputation } from "./recomputation.js";
import { fullestAndBesideHead, layersByCost, shardingOf, untimedSetup, virtualStageShares } from "./setup.js";
import { stageWork } from "./stage_time.js";
import { finalNorm, mixerLayers } from "./transformer.js";

const SIZES = ["tp", "cp", "pp", "ep", "etp", "dp", "chunks", "microbatch_size", "zero_stage"];
const NAMED = ["none", "selective", "full"];
const KEPT = 2000; // fastest layouts that are kept of a search
const OFTEN = 2000; // layouts after which a search tells how far it is

/** Options that the planner chooses unless they are said. */
export const SEARCHED = [...SIZES, "schedule", "recompute"];

/**
 * What is asked: `choices` as the engine takes them, those of `SEARCHED` held where they are not
 * null; `global_batch` in it, or about four million tokens. Throws InputError as Python does.
 */
export function planJob(catalog, choices, everySchedule = false) {
  const fixed = Object.fromEntries(SEARCHED.map((name) => [name, choices[name] ?? null]));
  const alone = Object.fromEntries(["tp", "cp", "pp", "ep"].map((name) => [name, 1]));
  const setup = untimedSetup(catalog, {
    ...choices, ...alone, etp: null, dp: null, schedule: "1f1b", chunks: null, microbatch_size: 1, microbatches: 1,
    zero_stage: 1, recompute: "none", global_batch: null, layers_per_stage: null, compute_efficiency: null,
  });
  const { framework, quantized, dense_class, framework_class, ...rates } = ratesOf(catalog, setup.software, setup.accelerator, setup.dtype);
  const attained = attainedOf(setup, rates, setup.nic);
  const interval_of = classOf(setup.shape, { framework_class, dense_class });
  const { world_size: world } = setup.parallel;
  const said = choices.global_batch ?? null;
  const usual = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, Math.floor(TABLES.usual_tokens / setup.sequence)))));
  const per_tensor = framework === "nanotron" ? 1 : 0;
  return {
    setup, attained, fixed, world, interval_of, held: heldOf(setup), asked: askedOf(setup, { quantized, per_tensor }),
    batch_assumed: said === null, global_batch: said ?? Math.max(usual, world),
    capacity_bytes: setup.capacity_bytes, residuals: catalog.residuals[interval_of],
    schedules: fixed.schedule !== null ? [fixed.schedule] : everySchedule ? Object.keys(TABLES.chunks)
      : TABLES.schedules_of[framework] ?? TABLES.schedules_of.megatron,
    recompute: recomputations(fixed, setup),
    selective: framework === "torchtitan" ? [0.5, 0] : [0, 1], sizes: new Map(),
  };
}

function recomputations({ recompute }, { shape, flash_attention, framework_memory }) {
  if (recompute !== null) {
    const { method } = recomputation(recompute);
    if (method && recompute !== "full") {
      throw new InputError("recompute", { expected: "none, full or modules with commas", got: recompute });
    }
    return [recompute];
  }
  const modes = ["none"];
  if (!flash_attention) modes.push("selective");
  if (!NAMED.includes(framework_memory.selective)) modes.push(framework_memory.selective);
  const light = shape.experts ? TABLES.small : "layernorm";
  modes.push(light);
  if (shape.latent) modes.push(`${light},mla_up_proj`);
  return [...modes, shape.experts ? "mlp,moe" : "mlp", "full"];
}

// What time is asked with, each field at its place, as yet without a layout.
const askedOf = ({ shape, sequence, parallel, recipe, mtp_layers }, more) => ({
  ...shapeNumbers(shape, mtp_layers), tp: 1, cp: 1, pp: 1, dp: 1, ep: 1, etp: 1, gpus: parallel.world_size,
  gpus_per_node: parallel.gpus_per_node, chunks: 1, filling: 0, fullest_layers: 0, head_layers: 0, microbatch: 1,
  microbatches: 1, sequence, tokens: 0, zero_stage: 0, repeats_layer: 0, repeats_core: 0, gathers: 0, scatters: 0,
  scattered_bytes: recipe.gradient_bytes, overlapped: 1, ...more,
});

// What memory is asked with.
function heldOf(setup) {
  const { shape, framework_memory: framework, recipe } = setup;
  return {
    dense_layer: 0, expert_layer: 0, routed_layer: 0, table: 0, mixer: 0, kept_mixer: 0,
    with_embedding: (shape.learned_positions ? shape.sequence * shape.hidden : 0) + shape.extra,
    with_head: 0, kept_dense: 0, kept_experts: 0, anew_dense: 0, anew_experts: 0,
    gradient_dense: 0, gradient_experts: 0, kept_embedding: 0, kept_head: 0, kept_output: 0, loss: 0,
    hidden: shape.hidden, key_value_width: 0, dispatched: 0, tokens: 0, split_tokens: 0, tp: 1, cp: 1, pp: 1,
    expert_ways: 1, shards: 1, expert_shards: 1, zero_stage: 0, sequence_parallel: setup.sequence_parallel ? 1 : 0,
    key_value_blocks: setup.context_exchange === "all-gather" ? 0 : setup.double_buffering ? 2 : 1,
    prefetched: setup.double_buffering ? 2 : 1, weight_bytes: recipe.weight_bytes,
    gradient_bytes: recipe.gradient_bytes, optimizer_bytes: recipe.optimizer_bytes, table_bytes: recipe.table_bytes,
    bucket_bytes: framework.bucket_bytes, fresh_gradient_bytes: framework.fresh_gradient_bytes,
    whole_in_pipeline: framework.whole_in_pipeline ? 1 : 0, allocator_share: framework.allocator_share,
    contexts: setup.reserve_bytes,
  };
}

const share = (layers, experts, embedding = false, head = false, mtp_layers = 0) => ({
  layers, expert_layers: layers * experts, dense_layers: layers * (1 - experts), embedding, head, mtp_layers, mixer_layers: 0,
});

// What TP, ETP and recomputation decide, for EP of 1; bytes that grow with tokens are for one.
function layerSizes(job, tp, etp, recompute) {
  const key = `${tp} ${etp} ${recompute}`;
  if (job.sizes.has(key)) return job.sizes.get(key);
  const { shape, sequence, sequence_parallel, format } = job.setup;
  const one = {
    ...job.setup, parallel: { ...job.setup.parallel, tp, etp, ep: 1, cp: 1, pp: 1 },
    recompute, recomputed: recomputation(recompute), tokens: sequence,
    split_tokens: sequence_parallel ? sequence / tp : sequence,
    kv_heads_per_rank: Math.max(1, Math.floor(shape.kv_heads / tp)),
  };
  const bytes = {};
  const inner = stageBytes(one, share(0, 0));
  for (const [name, experts, there] of [["dense", 0, shape.dense_layers], ["experts", 1, shape.expert_layers]]) {
    bytes[`kept_${name}`] = there ? stageBytes(one, share(1, experts)) - inner : 0;
    bytes[`anew_${name}`] = there ? recomputedBytes(one, share(1, experts)) : 0;
    bytes[`gradient_${name}`] = there ? layerGradientBytes(one, share(1, experts)) : 0;
  }
  bytes.kept_embedding = stageBytes(one, share(0, 0, true)) - inner;
  bytes.kept_head = stageBytes(one, share(0, 0, false, true, one.mtp_layers));
  bytes.kept_output = inner;
  bytes.loss = lossBytes(one);
  bytes.kept_mixer = mixerBytes(one);
  for (const name in bytes) bytes[name] /= sequence;
  const [plain, mixed] = [layerHeld(one, false), layerHeld(one, true)];
  const found = {
    ...bytes, dense_layer: plain.dense, expert_layer: mixed.dense, routed_layer: shape.experts ? mixed.routed : 0,
    with_head: finalNorm(shape) + one.mtp_layers * projectionHeld(one), table: tableHeld(one),
    mixer: mixerMore(one), key_value_width: mixerLayers(shape, 0, shape.layers) < shape.layers ? keyValueWidth(one) : 0,
    dispatched: (shape.experts?.top_k ?? 0) * etp * (format.dispatch + 2),
  };
  job.sizes.set(key, found);
  return found;
}

function stageNumbers({ setup: { shape, mtp_layers, framework_memory: { balanced } } }, pp, chunks, pipes) {
  const given = balanced ? layersByCost(shape, pp * chunks) : [null];
  const shares = virtualStageShares(shape, { depth: pp * chunks, pipes }, given, mtp_layers);
  const one = shares.slice(0, pp * chunks);
  const [fullest_layers, head_layers] = fullestAndBesideHead(one, pp, balanced || mtp_layers > 0);
  return { shares, fullest_layers, head_layers };
}

function repeated({ setup, selective }, shares, recompute) {
  if (recompute === "none") return [0, 0];
  if (recompute === "full") return [1, 0];
  if (recompute === "selective") return selective;
  const fullest = shares.reduce((most, one) => (one.layers > most.layers ? one : most));
  const one = { ...setup, recompute, recomputed: recomputation(recompute) };
  const { weights, core, recomputed } = stageWork(one, { ...fullest, embedding: false, head: false });
  return [weights + core ? recomputed / (weights + core) : 0, 0];
}

/**
 * All layouts, one number of stages and schedule after the other; yields what was found so far, with
 * `best` only at the end: { done, of, layouts, fitting, refused, least_bytes, best, front, told }.
 */
export function* planned(job) {
  const { setup, fixed } = job;
  const { shape } = setup;
  const found = collector(job);
  const steps = pipelines(shape, job.world, fixed).flatMap((pp) =>
    schedules(shape.layers, pp, job.schedules, fixed.chunks).map(([name, chunks]) => [pp, name, chunks]));
  for (const [at, [pp, schedule, chunks]] of steps.entries()) {
    const zero = sharding(setup.framework, pp, fixed.zero_stage);
    let since = 0;
    for (const mesh of meshes(job, pp)) {
      tryMesh(job, found, { pp, schedule, chunks, ...mesh }, zero);
      if (found.layouts - since < OFTEN) continue;
      since = found.layouts;
      yield { done: at, of: steps.length, layouts: found.layouts, fitting: found.fitting };
    }
    yield { done: at + 1, of: steps.length, layouts: found.layouts, fitting: found.fitting };
  }
  if (!found.layouts) throw nothing(job);
  yield { done: steps.length, of: steps.length, ...found.ended() };
}

function nothing(job) {
  const said = Object.entries(job.fixed).filter(([, value]) => value !== null);
  const expected = `another size: no layout of ${job.world} GPUs with ${job.global_batch} sequences has ${said.length ? "these" : "one"}`;
  return new InputError(said[0]?.[0] ?? "global_batch", { expected, got: said[0]?.[1] ?? job.global_batch });
}

const knownOf = new WeakMap(); // job → what many layouts share
function kept(job, key, make) {
  if (!knownOf.has(job)) knownOf.set(job, new Map());
  const known = knownOf.get(job);
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

// All microbatches, stages of ZeRO and recomputations of one mesh.
function tryMesh(job, found, mesh, zeros) {
  const { pp, schedule, chunks, dp } = mesh;
  if (job.global_batch % dp) return;
  const about = pipelineOf(job, mesh);
  const sizes = kept(job, job.global_batch / dp, () => divisors(job.global_batch / dp));
  const { asked, held } = job;
  layOut(job, mesh, about);
  const wanted = job.fixed.microbatch_size;
  for (let which = 0; which < job.recompute.length; which++) {
    sizeOf(job, mesh, job.recompute[which]);
    [asked.repeats_layer, asked.repeats_core] = about.again[which];
    const { method } = recomputation(job.recompute[which]);
    for (const size of sizes) {
      const number = job.global_batch / dp / size;
      if ((wanted !== null && size !== wanted) || number * pp * chunks > TABLES.most_visits) continue;
      const like = alike(schedule, pp, number, chunks);
      const { loads, idle } = fullOf(job, mesh, about, like);
      if (!loads) continue;
      asked.filling = idle;
      asked.microbatch = size;
      asked.microbatches = number;
      asked.tokens = held.tokens = (size * asked.sequence) / mesh.cp;
      held.split_tokens = held.sequence_parallel ? held.tokens / mesh.tp : held.tokens;
      for (const zero of zeros) {
        held.zero_stage = asked.zero_stage = zero;
        Object.assign(asked, about.sharded[zero]);
        const reason = fullest(loads[method], held, job.capacity_bytes, found.fitting > 0);
        if (reason === null) found.take(mesh, zero, which, timed_step(asked, job.attained).total_s, most.total, asked);
        else found.refuse(reason, most.total);
      }
    }
  }
}

// What all layouts of a schedule on so many stages share.
const pipelineOf = (job, { pp, schedule, chunks }) => kept(job, `${schedule} ${pp} ${chunks}`, () => {
  const stages = stageNumbers(job, pp, chunks, schedule === "dualpipe" ? 2 : 1);
  const sharded = [0, 1, 2, 3].map((zero) => shardingOf(job.setup, job.setup.framework_memory, zero, pp));
  return { stages, sharded, again: job.recompute.map((mode) => repeated(job, stages.shares, mode)), full: new Map() };
});

function fullOf(job, mesh, { stages, full }, like) {
  if (!full.has(like)) {
    const loads = loadsOf(job, mesh, like, stages);
    full.set(like, { loads, idle: loads && filling(mesh.schedule, mesh.pp, like, mesh.chunks) });
  }
  return full.get(like);
}

// Writes a mesh into what time and memory are asked with: two objects for all layouts, since
// millions of new ones would take longer than the models themselves.
function layOut({ setup, asked, held, world }, mesh, { stages }) {
  for (const axis of ["tp", "cp", "pp", "ep", "etp"]) asked[axis] = mesh[axis];
  asked.dp = mesh.dp;
  asked.chunks = mesh.chunks;
  asked.fullest_layers = stages.fullest_layers;
  asked.head_layers = stages.head_layers;
  for (const axis of ["tp", "cp", "pp"]) held[axis] = mesh[axis];
  held.expert_ways = setup.shape.experts ? mesh.ep * mesh.etp : 1;
  held.shards = mesh.dp * mesh.cp;
  held.expert_shards = world / (mesh.etp * mesh.ep * mesh.pp);
}

function sizeOf(job, { tp, etp, ep }, recompute) {
  const [{ held }, sizes] = [job, layerSizes(job, tp, etp, recompute)];
  for (const name in sizes) held[name] = sizes[name];
  held.routed_layer = sizes.routed_layer / ep;
}

// By the way of recomputing, "" for modules; null where the schedule cannot have these sizes.
function loadsOf(job, { pp, schedule, chunks }, microbatches, { shares }) {
  const tied = job.setup.shape.tied_embeddings;
  const of = (text) => rankLoads(schedule, pp, microbatches, chunks, shares, recomputation(text), tied);
  try {
    return { "": of("none"), uniform: job.recompute.includes("full") ? of("full") : [] };
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

const most = { total: 0 };
// What is first too much of any rank and moment, null where it fits; `most.total` is what the
// fullest needs. With `quick` that is left out where weights and their state alone are too much.
function fullest(loads, held, capacity, quick) {
  let [state, active, working, total] = [0, 0, 0, 0];
  for (let at = 0; at < loads.length; at++) {
    const parts = rank_bytes(loads[at], held);
    const lasting = parts.weights + parts.gradients + parts.optimizer + held.contexts;
    if (lasting > state) state = lasting;
    if (quick && capacity !== null && state > capacity) {
      most.total = Infinity;
      return 0;
    }
    const kept_ = lasting + parts.activations;
    if (kept_ > active) active = kept_;
    if (kept_ + parts.working + parts.communication > working) working = kept_ + parts.working + parts.communication;
    if (parts.total_bytes > total) total = parts.total_bytes;
  }
  most.total = total;
  if (capacity === null || total <= capacity) return null;
  return state > capacity ? 0 : active > capacity ? 1 : working > capacity ? 2 : 3;
}

const byTime = (one, other) => one.step_s - other.step_s || one.order - other.order;

// Counts, the fastest, and the front of time against memory.
function collector(job) {
  const refused = TABLES.reasons.map(() => 0);
  const times = [];
  let [best, front, limit] = [[], [], Infinity];
  return {
    layouts: 0, fitting: 0, least: Infinity,
    refuse(reason, bytes) {
      this.layouts++;
      refused[reason]++;
      if (bytes < this.least) this.least = bytes;
    },
    take(mesh, zero_stage, which, step_s, memory_bytes, { microbatch, microbatches, filling: idle }) {
      this.layouts++;
      this.fitting++;
      if (memory_bytes < this.least) this.least = memory_bytes;
      times.push(step_s);
      let beaten = false;
      for (const one of front) beaten ||= one.step_s <= step_s && one.memory_bytes <= memory_bytes;
      if (beaten && step_s > limit) return;
      const order = ((which * 4 + zero_stage) * 1e4 + mesh.tp) * 1e4 + mesh.cp + mesh.chunks / 1e3;
      const one = {
        ...mesh, microbatch_size: microbatch, microbatches, filling: idle, zero_stage, recompute: job.recompute[which],
        which, step_s, memory_bytes, order,
      };
      if (!beaten) front = [...front.filter((o) => o.step_s < step_s || o.memory_bytes < memory_bytes), one];
      best.push(one);
      if (best.length < 2 * KEPT) return;
      best = best.sort(byTime).slice(0, KEPT);
      limit = best.at(-1).step_s;
    },
    ended() {
      best.sort(byTime);
      const [low, high] = job.residuals;
      const first = best[0]?.step_s ?? 0;
      const reasons = Object.fromEntries(TABLES.reasons.map((name, at) => [name, refused[at]]));
      return {
        layouts: this.layouts, fitting: this.fitting, refused: reasons, least_bytes: this.least,
        best: best.slice(0, KEPT), front: front.sort(byTime),
        told: times.reduce((sum, time) => sum + (time * low > first * high ? 0 : 1), 0),
      };
    },
  };
}

/** Seconds by the terms of a step, which add up to it, as figgen.scenarios.plan_rows has them. */
export function termsOf(job, layout) {
  const { asked } = job;
  const about = pipelineOf(job, layout);
  layOut(job, layout, about);
  [asked.repeats_layer, asked.repeats_core] = about.again[layout.which];
  asked.filling = layout.filling;
  asked.microbatch = layout.microbatch_size;
  asked.microbatches = layout.microbatches;
  asked.tokens = (layout.microbatch_size * asked.sequence) / layout.cp;
  asked.zero_stage = layout.zero_stage;
  Object.assign(asked, about.sharded[layout.zero_stage]);
  const parts = timed_step(asked, job.attained);
  const mix = asked.expert_layers / asked.layers;
  const passes = asked.microbatches * asked.fullest_layers;
  const mixed = (name) => passes * ((1 - mix) * parts.dense[name] + mix * parts.expert[name]);
  const found = {
    products: mixed("products_s"), attention: mixed("attention_s"), memory: mixed("memory_s"),
    messages: mixed("messages_s"), repeated: mixed("repeated_s"),
  };
  return {
    ...found, host: mixed("total_s") - Object.values(found).reduce((sum, one) => sum + one, 0),
    ends: parts.work_s - mixed("total_s"), gathers: parts.sharding_s, idle: parts.idle_s, stages: parts.stage_messages_s,
    gradients: parts.gradients_s, update: parts.update_s, straggling: parts.straggling_s, fixed: parts.fixed_s,
  };
}

/** All at once, for tests and small searches. */
export function planAll(job) {
  let last = null;
  for (const found of planned(job)) last = found;
  return last;
}
