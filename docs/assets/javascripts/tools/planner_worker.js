// Searches the layouts of a job in a worker, so that the page never waits.

import { InputError } from "../engine/errors.js";
import { servedBy } from "../engine/job.js";
import { mapped, plain } from "../engine/records.js";
import { hosts_words } from "../models/machine/host_words.js";
import { front, other_layout_interval, same_as_best } from "../models/planner/ranking.js";
import { checkpoint_bytes_of } from "../models/planner/saving.js";
import { MFU_CONVENTION } from "../models/step/compute.js";
import { needed_utilisation } from "../models/step/step.js";
import { fastest_data, layout_data, page_plan, planned } from "../scenarios/tools/page_plan.js";

const SHOWN = 500; // fastest layouts that are sent to the page
const EVERY_MS = 100;
const LARGE = 3e5; // layouts after which a reader gets the fastest before the others are counted

// Tries one number of nodes after the other and reports each; returns the answer, or null.
async function sizedNodes(catalog, choices, question) {
  const { sizedCounts } = await import("./planner_nodes.js");
  let [best, last] = [null, null];
  for (last of sizedCounts(catalog, choices, question)) {
    ({ best } = last);
    postMessage({ sized: last });
  }
  postMessage({ sizedAll: best });
  return best && { ...choices, nodes: best, global_batch: last.global_batch };
}

addEventListener("message", async ({ data: { catalog, choices: given, search, question } }) => {
  try {
    const begun = performance.now();
    const choices = question ? await sizedNodes(catalog, given, question) : given;
    if (!choices) return;
    const { job, about, batch_assumed } = page_plan(servedBy(catalog), mapped(choices), search.every, search.chance);
    const { accelerator, measured, cluster, capacity_bytes, interval: { interval_of, residuals } } = about;
    const { setup, global_batch } = job;
    const { sequence, parallel: { world_size: gpus } } = setup;
    const whole = (data) => {
      const layout = plain(data);
      const chance = capacity_bytes === null ? null : layout.chance;
      const mfu = needed_utilisation(setup, MFU_CONVENTION, (global_batch * sequence) / layout.step_s / gpus, cluster.peak_flops_per_s);
      return { ...layout, chance, mfu };
    };
    const interval = about.given.get("time_factor") === null ? residuals : other_layout_interval(...residuals);
    let [last, told, large] = [null, begun, false];
    for (last of planned(job)) {
      if (!large && last.layouts > LARGE && last.done < last.of) {
        large = true;
        const row = fastest_data(job);
        if (row) postMessage({ early: { row: whole(row), interval } });
      }
      if (performance.now() - told < EVERY_MS) continue;
      told = performance.now();
      const { done, of, layouts, fitting } = last;
      postMessage({ progress: { done, of, layouts, fitting } });
    }
    const { found } = last;
    const full = (place) => whole(layout_data(found, place));
    const { layouts, fitting, refused, least_bytes } = found;
    const fastest = Array.from({ length: Math.min(SHOWN, fitting) }, (_, place) => full(place));
    const meshes = [...found.meshes].slice(0, SHOWN).map(([place, variants]) => ({ ...full(place), place: place + 1, variants }));
    const ends = front(found).map(full);
    const said = hosts_words(choices.nodes, choices.gpus_per_node, about.setup.parallel.nodes, about.chip);
    const notes = said ? [`${said}.`] : [];
    if (accelerator === "own" && !measured) {
      const reached = ((100 * job.attained.matmul_flops_per_s) / cluster.peak_flops_per_s).toFixed(1);
      notes.push(`Nobody has timed your accelerator: we assume that matmuls reach ${reached}% of its peak. Measure it with measure.py.`);
    }
    postMessage({ found: {
      layouts, fitting, refused: plain(refused), least_bytes, best: fastest, meshes, front: ends,
      told: same_as_best(found, ...residuals), interval_of, residuals, global_batch, interval,
      batch_assumed, capacity_bytes, most_bytes: job.most_bytes, schedules: job.schedules, took_s: (performance.now() - begun) / 1000,
      notes, gpus, sequence, chip: accelerator, mixture: setup.shape.experts !== null, checkpoint_bytes: checkpoint_bytes_of(setup),
    } });
  } catch (error) {
    if (!(error instanceof InputError)) return reportError(error);
    postMessage({ error: error.message });
  }
});
