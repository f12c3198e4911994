// What is asked of a search: the job, and what time and memory are asked with; mirrors
// figgen.scenarios.planning.planner.

import { TABLES } from "../plan-memory.js";
import { InputError } from "./errors.js";
import { attainedOf, untimedJob } from "./job.js";
import { plain } from "./records.js";
import { job_sizes } from "../models/memory/held_sizes.js";
import { recomputation } from "../models/shape/recomputation.js";
import { setup_numbers } from "../models/step/job.js";

const SIZES = ["tp", "cp", "pp", "ep", "etp", "dp", "chunks", "microbatch_size", "zero_stage"];
const NAMED = ["none", "selective", "full"];

/** Options that the planner chooses unless they are said. */
export const SEARCHED = [...SIZES, "schedule", "recompute"];

/**
 * What is asked: `choices` as the engine takes them, those of `SEARCHED` held where they are not
 * null; `global_batch` in it, or about four million tokens. Throws InputError as Python does.
 */
export function planJob(catalog, choices, everySchedule = false) {
  const rank = choices.lora_rank ?? null;
  if (rank !== null) throw new InputError("lora_rank", { expected: TABLES.no_adapters, got: rank });
  const fixed = Object.fromEntries(SEARCHED.map((name) => [name, choices[name] ?? null]));
  const alone = Object.fromEntries(["tp", "cp", "pp", "ep"].map((name) => [name, 1]));
  const about = untimedJob(catalog, {
    ...choices, ...alone, etp: null, dp: null, schedule: "1f1b", chunks: null, microbatch_size: 1, microbatches: 1,
    zero_stage: 1, recompute: "none", global_batch: null, layers_per_stage: null, compute_efficiency: null,
  });
  const { setup, given, capacity_bytes } = about;
  const { attained, rates, interval_of, residuals } = attainedOf(catalog, about);
  const { world_size: world } = setup.parallel;
  const said = choices.global_batch ?? null;
  const usual = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, Math.floor(TABLES.usual_tokens / setup.sequence)))));
  const per_tensor = Number(rates.framework === "nanotron");
  return {
    about, setup, attained, fixed, world, interval_of, residuals, capacity_bytes,
    held: heldOf(setup, given.reserve_bytes), asked: askedOf(setup, { quantized: rates.quantized, per_tensor }),
    batch_assumed: said === null, global_batch: said ?? Math.max(usual, world),
    schedules: fixed.schedule !== null ? [fixed.schedule] : everySchedule ? Object.keys(TABLES.chunks)
      : TABLES.schedules_of[rates.framework] ?? TABLES.schedules_of.megatron,
    recompute: recomputations(fixed, setup),
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
const askedOf = (setup, more) => ({
  ...plain(setup_numbers(setup)), tp: 1, cp: 1, pp: 1, dp: 1, ep: 1, etp: 1, gpus: setup.parallel.world_size,
  gpus_per_node: setup.parallel.gpus_per_node, chunks: 1, filling: 0, fullest_layers: 0, head_layers: 0, microbatch: 1,
  microbatches: 1, tokens: 0, zero_stage: 0, repeats_layer: 0, repeats_core: 0, gathers: 0, scatters: 0,
  overlapped: 1, ...more,
});

// What memory is asked with.
const heldOf = (setup, contexts) => ({
  layer: null, job: job_sizes(setup, setup.framework_memory.allocator_share, contexts), tokens: 0, split_tokens: 0,
  tp: 1, cp: 1, pp: 1, ep: 1, expert_ways: 1, shards: 1, expert_shards: 1, zero_stage: 0, microbatches: 1,
});
