// What many layouts of a search share: sizes of layers and of stages; mirrors figgen.models.planner.plan_sizes.

import { layerGradientBytes, lossBytes, mixerBytes, recomputedBytes, stageBytes } from "./activations.js";
import { InputError } from "./errors.js";
import { layerHeld, mixerMore, projectionHeld, tableHeld } from "./held.js";
import { keyValueWidth } from "./memory.js";
import { rankLoads } from "./plan_space.js";
import { filling, repeated } from "./predicted.js";
import { recomputation } from "./recomputation.js";
import { fullestAndBesideHead, layersByCost, shardingOf, virtualStageShares } from "./setup.js";
import { finalNorm, mixerLayers } from "./transformer.js";

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

const knownOf = new WeakMap(); // job → what many layouts share
/** What `make` gives, once for a job and a key. */
export function kept(job, key, make) {
  if (!knownOf.has(job)) knownOf.set(job, new Map());
  const known = knownOf.get(job);
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

/** What all layouts of a schedule on so many stages share. */
export const pipelineOf = (job, { pp, schedule, chunks }) => kept(job, `${schedule} ${pp} ${chunks}`, () => {
  const stages = stageNumbers(job, pp, chunks, schedule === "dualpipe" ? 2 : 1);
  const sharded = [0, 1, 2, 3].map((zero) => shardingOf(job.setup, job.setup.framework_memory, zero, pp));
  return { stages, sharded, again: job.recompute.map((mode) => repeated(job.setup, stages.shares, mode)), full: new Map() };
});

/** What ranks hold when they are fullest, and how long they wait, by microbatches that are alike. */
export function fullOf(job, mesh, { stages, full }, like) {
  if (!full.has(like)) {
    const loads = loadsOf(job, mesh, like, stages);
    full.set(like, { loads, idle: loads && filling(mesh.schedule, mesh.pp, like, mesh.chunks) });
  }
  return full.get(like);
}

/**
 * Writes a mesh into what time and memory are asked with: two objects for all layouts, since
 * millions of new ones would take longer than the models themselves.
 */
export function layOut({ setup, asked, held, world }, mesh, { stages }) {
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

/** The same of what recomputation decides. */
export function sizeOf(job, { tp, etp, ep }, recompute) {
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
