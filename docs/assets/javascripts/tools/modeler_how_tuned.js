// Lines behind the trained part of a job: adapters of frozen weights, and Muon's update. Pure.

import { sum } from "../engine/runtime.js";
import { kept_by_rank, kept_by_stage } from "../models/memory/trained_state.js";
import { largest_sides, update_flops } from "../models/step/newton_schulz.js";
import { stage_work } from "../models/step/stage_work.js";
import { workedLine } from "../engine/worked.js";
import { passingOf, rateText, sharesOf, timeLine } from "./modeler_how_stages.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";
import { plainLine } from "./worked.js";

const flop = (work) => quantity(work, "FLOP", "si.4");
const parameters = (count) => quantity(count, "param", "si");

/** Computation of the pipeline rank that works longest, if only adapters are trained. */
export function tunedComputing({ setup, job, step }) {
  const works = sharesOf(setup, step.pipeline_rank).map((share) => stage_work(setup, share));
  const passing = passingOf(setup);
  const [weights, adapters, core, spared] = ["weights", "adapters", "core", "spared"].map((name) => sum(works.map((work) => work[name])));
  const forward = weights + adapters + core;
  const backward = weights + 2 * adapters + 2 * core - spared;
  const total = passing * (forward + backward);
  return [
    plainLine(
      `One forward of a microbatch on pipeline rank ${step.pipeline_rank}, divided over TP and CP.`,
      "matmuls with weights + those of adapters + attention core",
      `${flop(weights)} + ${flop(adapters)} + ${flop(core)} = ${flop(forward)}`,
    ),
    plainLine(
      "The backward pass computes gradients of inputs after the first adapters, and of adapters, but not of frozen weights.",
      "weights + 2 · adapters + 2 · core − first inputs",
      `${flop(weights)} + 2 · ${flop(adapters)} + 2 · ${flop(core)} − ${flop(spared)} = ${flop(backward)}`,
    ),
    plainLine(
      "All microbatches that pass this rank.",
      "(forward + backward) · microbatches",
      `(${flop(forward)} + ${flop(backward)}) · ${plainNumber(passing)} = ${flop(total)}`,
    ),
    timeLine({ job, step }, total),
  ];
}

/** Weights, gradients or state of a rank; `first` is the stage of ZeRO that divides them, `each` their bytes. */
export function tunedState({ setup }, rank, part, [first, each]) {
  const { recipe, zero_stage, dense_shards, parallel, frozen_weights } = setup;
  const { trained: all, trained_routed, frozen_bytes, frozen_routed_bytes } = kept_by_rank(setup, rank.pipeline_rank);
  const kept = { trained: [all, trained_routed], frozen: [frozen_bytes, frozen_routed_bytes] };
  const terms = [dense_shards, parallel.edp].flatMap((ways, at) => {
    const over = zero_stage >= first ? ` / ${plainNumber(ways)}` : "";
    const trained = kept.trained[at] ? [`${parameters(kept.trained[at])} · ${bytes(each)}${over}`] : [];
    return part === "weights" && kept.frozen[at] ? [...trained, `${bytes(kept.frozen[at])}${over}`] : trained;
  });
  const beside = part === "weights" ? ` and frozen weights, those of matrices in ${frozen_weights}` : "";
  return plainLine(
    `Adapters, recipe ${recipe.name}${beside}; ZeRO ${zero_stage}.`,
    `adapters · bytes of each${beside && " + frozen"}${zero_stage >= first ? ", over the ranks that share them" : ""}`,
    `${terms.join(" + ") || bytes(0)} = ${bytes(rank.lines.find(([of]) => of === part)?.[2] ?? 0)}`,
  );
}

/** One message of weights that a stage gathers; frozen ones are sent as they are stored. */
export function tunedBucket({ setup, step }, row, calls) {
  const sent = setup.placement.stages_of_rank(step.pipeline_rank).map((stage) => {
    const kept = kept_by_stage(setup, stage);
    const [trained, frozen] = row.axis === "edp" ? [kept.trained_routed, kept.frozen_routed_bytes] : [kept.trained, kept.frozen_bytes];
    return [trained, setup.gathers ? frozen : 0];
  });
  const size = ([trained, frozen]) => (trained * setup.recipe.weight_bytes + frozen) / calls;
  const [trained, frozen] = sent.find((one) => Math.abs(size(one) - row.buffer_bytes) < 1);
  return plainLine(
    "The weights that a stage sends in this group, in equal buckets; frozen ones as they are kept.",
    "(adapters · bytes of each + frozen) / buckets",
    `(${parameters(trained)} · ${bytes(setup.recipe.weight_bytes)} + ${bytes(frozen)}) / ${plainNumber(calls)} = ${bytes(row.buffer_bytes)}`,
  );
}

/** Muon's matmuls, and their share of a step that includes them. */
export const UPDATE = {
  update: ({ setup, job, step }, notes) => {
    const works = Array.from({ length: setup.parallel.pp }, (_, rank) => update_flops(setup, rank));
    const flops = Math.max(...works);
    const rank = works.indexOf(flops);
    const sides = largest_sides(setup);
    return [
      workedLine(notes, "newton_schulz_flops", {
        rows: Math.max(...sides), columns: Math.min(...sides), iterations: setup.recipe.iterations,
      }),
      plainLine(
        `All matrices that the busiest GPU orthogonalizes, on pipeline rank ${rank}: ${setup.zero_stage ? "whole matrices are dealt to the ranks that share them" : "every replica does all"}, and tensor-parallel ranks each do all of a matrix. The line above is the largest.`,
        "FLOP / (peak · share)",
        `${flop(flops)} / ${rateText(job, job.wide_peak_flops_per_s, job.wide_flops_per_s / job.wide_peak_flops_per_s)} = ${seconds(step.orthogonalising_s)}`,
      ),
    ];
  },
  updateshare: ({ step: { step_time_s, orthogonalising_s: added_s, step_and_orthogonalising_s: whole_s } }) => [
    plainLine(
      "They run at the end of the step; this is their share of it.",
      "products / (step + products)",
      `${seconds(added_s)} / (${seconds(step_time_s)} + ${seconds(added_s)}) = ${percent(added_s / whole_s)}`,
    ),
  ],
};
