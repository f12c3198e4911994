// The predicted time of a step, and the share of the peak at which its parts add up to it; the model
// itself is printed from Python, this makes its numbers; mirrors figgen.scenarios.runs.job,
// figgen.scenarios.runs.step_as_run and figgen.models.step.step_share and pipeline_filling.

import { timed_step } from "../models/step/timed_step.js";
import { asMeasured } from "./measured.js";
import { recomputation } from "./recomputation.js";
import { build } from "./schedule.js";
import { USUAL_MEMORY, checkPeak, fullestAndBesideHead, untimedSetup } from "./setup.js";
import { simulate } from "./simulate.js";
import { stageWork } from "./stage_time.js";
import { durations } from "./trace.js";
import { timeline } from "./training.js";
import {
  FFN_MATRICES, attentionWeights, ffnWeights, mixerFlops, mixerLayers, mixerWeights, parametersApart, windowedLayers,
} from "./transformer.js";

const KINDS = ["product", "plain", "expert", "attention"];
const NARROW_HEADS = 1 / 3;
const UNKNOWN = "unmeasured", FEWEST_GPUS = 8, LARGE_GPUS = 3000, MOST_GPUS = 16_384;
const CLOSED = ["1f1b", "gpipe", "interleaved-1f1b"];
const REPEATED = { none: [0, 0], selective: [0, 1], full: [1, 0] };

/**
 * The setup of `choices`, as `untimedSetup` takes them, with `predicted`, its time and interval, and
 * the share of the peak that gives it, unless `compute_efficiency` is said.
 */
export function setupFrom(catalog, choices) {
  const setup = untimedSetup(catalog, choices);
  const said = (choices.compute_efficiency ?? null) !== null;
  // No job with adapters was timed: the share is that of the same job without them.
  const lora = setup.lora_rank !== null;
  const timed = lora ? untimedSetup(catalog, { ...choices, lora_rank: null, frozen_weights: "16-bit" }) : setup;
  const predicted = said ? null : predictedTime(catalog, timed);
  const compute_efficiency = predicted
    ? shareFor(timed, predicted.step_time_s, choices.untimed) : setup.compute_efficiency;
  return Object.freeze({ ...setup, predicted: lora ? null : predicted, compute_efficiency });
}

/** { step_time_s, range, interval_of } of a setup, the ends of its interval as shares of its time, or null for a chip of one's own of which too little is said. */
export function predictedTime(catalog, setup) {
  const { accelerator, nic, software, measured, dtype, memory_bandwidth_bytes_per_s } = setup;
  if (accelerator === "own" && !measured && !memory_bandwidth_bytes_per_s) return null;
  const rates = ratesOf(catalog, software, accelerator, dtype);
  const step_time_s = timed_step(jobOf(setup, rates), attainedOf(setup, rates, nic)).total_s;
  const interval_of = classOf(setup, rates);
  return { step_time_s, range: catalog.residuals[interval_of], interval_of };
}

/** The class whose residuals tell how far off a prediction may be. */
export function classOf({ shape: { state_space, experts }, parallel: { world_size } }, { framework_class, dense_class }) {
  const large = world_size >= LARGE_GPUS;
  if (state_space || world_size < FEWEST_GPUS || world_size > MOST_GPUS || (large && experts)) return UNKNOWN;
  if (large && dense_class !== UNKNOWN) return "dense models on thousands of GPUs";
  return framework_class ?? (experts ? "mixtures of experts" : dense_class);
}

// What software attains on a chip; on one of the reader's own, of its numbers. Throws an InputError
// for a format that the chip does not multiply.
export function ratesOf({ attained, accelerators }, software, chip, dtype) {
  const rates = { ...attained.shared, ...attained.rows[chip][dtype] };
  if (software === attained.usual) return rates;
  const { kinds, rows } = attained.others[software];
  const number = rows[chip]?.[dtype];
  if (number === null) checkPeak(chip, accelerators[chip].peaks, "fp8");
  return { ...rates, ...kinds[number ?? 0] };
}

/** What attention over heads of a width reaches of that over heads of 128. */
export const headShare = (width) => Math.pow(Math.min(width, 128) / 128, NARROW_HEADS);

export function attainedOf({ accelerator, cluster, shape, dtype, software, measured, memory_bandwidth_bytes_per_s }, rates, nic) {
  const network = cluster.network_bandwidth_bytes_per_s;
  const share = nic.startsWith("efa") ? rates.efa_share : rates.network_share;
  const heads = headShare(shape.head_dim);
  // Whose rows are shares of its numbers.
  const own = accelerator === "own";
  const of = (kind) => (own ? cluster.peak_flops_per_s : 1) * rates[`${kind}_flops_per_s`] * (kind === "attention" ? heads : 1) * rates[`${kind}_share`];
  // A run in FP8 may be held against the peak of BF16: its products are narrow all the same.
  const narrow = software.endsWith("fp4") ? "fp4" : "fp8";
  const read = rates.quantized && dtype === "bf16" ? narrow : dtype;
  const attained = KINDS.map((kind) => [`${kind}_flops_per_s`, of(kind)]);
  const near = rates.scale_up_bytes_per_s * (own ? cluster.scale_up_bandwidth_bytes_per_s : 1);
  return {
    ...rates,
    ...Object.fromEntries(attained),
    memory_bytes_per_s: rates.memory_bytes_per_s * (own ? memory_bandwidth_bytes_per_s ?? USUAL_MEMORY : 1),
    scale_up_bytes_per_s: near,
    near_shuffle_bytes_per_s: near,
    network_bytes_per_s: network * share,
    shuffle_bytes_per_s: network * rates.shuffle_share,
    ...(measured && asMeasured(measured, read, rates, heads)),
  };
}

function jobOf(setup, { framework, quantized }) {
  const {
    parallel, shape, placement, microbatches, microbatch_size: microbatch, sequence, tokens, zero_stage,
  } = setup;
  const { tp, cp, pp, dp, etp, gpus_per_node, world_size: gpus } = parallel;
  const chunks = pp > 1 ? placement.depth / pp : 1;
  const cut = setup.layers_per_stage !== null || setup.mtp_layers > 0 || setup.framework_memory.balanced;
  const [fullest_layers, head_layers] = fullestAndBesideHead(setup.shares.slice(0, placement.depth), pp, cut);
  const [repeats_layer, repeats_core] = repeated(setup, setup.shares, setup.recompute);
  const ep = Math.min(parallel.ep, gpus / pp);
  return {
    ...shapeNumbers(shape, setup.mtp_layers), tp, cp, pp, dp, ep, etp, gpus, gpus_per_node, chunks,
    filling: filling(setup.schedule, pp, microbatches, chunks), fullest_layers, head_layers,
    microbatch, microbatches, sequence, tokens, zero_stage, repeats_layer, repeats_core, quantized,
    ...setup.sharded, scattered_bytes: setup.recipe.gradient_bytes, per_tensor: framework === "nanotron" ? 1 : 0,
  };
}

export function shapeNumbers(shape, mtp_layers) {
  const {
    layers, expert_layers, hidden, vocab, ffn_hidden, attention_width, experts, latent: mla, heads, kv_heads, head_dim,
  } = shape;
  const [dense, routed] = parametersApart(shape, mtp_layers);
  const key = mla && mla.nope_head_dim + mla.rope_head_dim;
  const mixers = shape.state_space;
  const part = mixerLayers(shape, 0, layers) / layers;
  const mean = (attention, mixer) => (mixers ? (1 - part) * attention + part * mixer : attention);
  return {
    layers, expert_layers, mtp_layers, hidden, vocab, ffn_hidden, attention_width,
    attention_weights: mean(attentionWeights(shape), mixerWeights(shape)), mixer_share: part, mixer_work: mixerFlops(shape), dense_weights: ffnWeights(shape, ffn_hidden),
    expert_weights: experts ? ffnWeights(shape, experts.ffn_hidden) : 0,
    experts: experts?.count ?? 1, top_k: experts?.top_k ?? 0, shared: experts?.shared ?? 0,
    expert_ffn: experts?.ffn_hidden ?? 0, ffn_matrices: FFN_MATRICES[shape.ffn],
    window: shape.window, windowed_share: windowedLayers(shape, 0, layers) / layers,
    projected_width: mla ? heads * (2 * key + mla.value_head_dim)
      : mean((heads + 2 * kv_heads) * head_dim, mixers?.projected + 2 * mixers?.inner),
    key_value_width: mla ? Math.floor((heads * (key + mla.value_head_dim)) / 2) : mean(kv_heads * head_dim, 0),
    dense_parameters: dense, routed_parameters: routed,
  };
}

/** Shares of a layer's forward and of its attention core that `recompute` makes again. */
export function repeated(setup, shares, recompute) {
  if (REPEATED[recompute]) return REPEATED[recompute];
  const fullest = shares.reduce((most, share) => (share.layers > most.layers ? share : most));
  const one = { ...setup, recompute, recomputed: recomputation(recompute) };
  const { weights, core, recomputed } = stageWork(one, { ...fullest, embedding: false, head: false });
  return [weights + core ? recomputed / (weights + core) : 0, 0];
}

/** Idle time of a stage over the time of one microbatch, for stages that are alike. */
export function filling(schedule, stages, microbatches, chunks) {
  if (stages === 1) return 0;
  if (CLOSED.includes(schedule)) {
    const inside = Math.min(microbatches, stages);
    return stages - inside + (inside - 1) / chunks;
  }
  if (schedule === "naive") return microbatches * (stages - 1);
  const order = build(schedule, { stages, microbatches, chunks });
  const { stages: all, pipes } = order.placement;
  const unit = 1 / (3 * (all / stages / pipes));
  const times = durations({ forward: unit, backward_input: unit, backward_weight: unit });
  return Math.max(0, simulate(order, times).makespan - microbatches);
}

const [FIRST, LEAST, MOST, ROUNDS, NEAR] = [0.5, 0.01, 1, 30, 1e-12];

/**
 * The share of the dense peak at which the step takes `wanted_s`, or the nearest it can have;
 * `first` is where to begin.
 */
export function shareFor(setup, wanted_s, first = FIRST) {
  let [share, inverse] = [first, 1 / first];
  let time_s = stepTime(setup, share);
  let slope = time_s / inverse;
  for (let round = 0; round < ROUNDS; round++) {
    const missing_s = wanted_s - time_s;
    if (Math.abs(missing_s) <= NEAR * wanted_s) break;
    share = 1 / Math.min(1 / LEAST, Math.max(1 / MOST, inverse + missing_s / slope));
    if (1 / share === inverse) break;
    const before_s = time_s;
    time_s = stepTime(setup, share);
    slope = Math.max((time_s - before_s) / (1 / share - inverse), slope / 2);
    inverse = 1 / share;
  }
  return share;
}

function stepTime(setup, compute_efficiency) {
  const { trace, before_s, after_s } = timeline({ ...setup, compute_efficiency });
  return before_s + trace.makespan + after_s;
}
