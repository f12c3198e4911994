// Searches the layouts of a job beside the page, which is never kept waiting.

import { InputError } from "../engine/errors.js";
import { planJob, planned, termsOf } from "../engine/plan.js";
import { plain } from "../engine/records.js";
import { asdict } from "../engine/runtime.js";
import { SAFE, fit_probability } from "../models/memory/fit_probability.js";
import { parameter_counts } from "../models/shape/transformer.js";
import { CONVENTIONS } from "../models/step/compute.js";

const SHOWN = 500; // fastest layouts that a page is given
const EVERY_MS = 100;

addEventListener("message", ({ data: { catalog, choices, every } }) => {
  try {
    const begun = performance.now();
    const job = planJob(catalog, choices, every);
    let [found, told] = [null, begun];
    for (found of planned(job)) {
      if (performance.now() - told < EVERY_MS) continue;
      told = performance.now();
      postMessage({ progress: { done: found.done, of: found.of, layouts: found.layouts, fitting: found.fitting } });
    }
    const { setup, about: { accelerator, measured, cluster }, world, sequence = setup.sequence } = job;
    const tokens = job.global_batch * sequence;
    const flops = CONVENTIONS.get("6nd+attention").count(setup.shape, sequence);
    const { capacity_bytes } = job;
    const { peak_spread } = setup.framework_memory;
    const full = (layout) => ({
      ...layout, terms: termsOf(job, layout),
      chance: capacity_bytes === null ? null : fit_probability(layout.memory_bytes, capacity_bytes, peak_spread),
      mfu: ((tokens / layout.step_s / world) * flops) / cluster.peak_flops_per_s,
    });
    const front = found.front.map(full);
    const { interval_of, residuals, global_batch, batch_assumed } = job;
    const guessed = accelerator === "own" && !measured;
    postMessage({ found: {
      ...found, best: found.best.slice(0, SHOWN).map(full),
      meshes: found.meshes.slice(0, SHOWN).map(full), front,
      // The fastest layout that fits surely takes less memory than any faster layout, so it is on the front.
      safest: front.find(({ chance }) => chance === null || chance >= SAFE) ?? null, interval_of, residuals,
      global_batch, batch_assumed, capacity_bytes, schedules: job.schedules, took_s: (performance.now() - begun) / 1000,
      reached: guessed ? job.attained.product_flops_per_s / cluster.peak_flops_per_s : null,
      gpus: world, sequence, parameters: parameter_counts(setup.shape).total, recipe: plain(asdict(setup.recipe)),
    } });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    postMessage({ error: error.message });
  }
});
