// The stages of a pipeline rank and the time that they take, for worked lines. Pure.

import { virtual_stage_shares } from "../models/setup/stage_layers.js";
import { kindsOf } from "./modeler_model.js";
import { percent, quantity, seconds } from "./quantities.js";
import { plainLine, sumLine } from "./worked.js";

/** Shares of the layers that the virtual stages of a pipeline rank have. */
export function sharesOf(setup, rank) {
  const shares = virtual_stage_shares(setup);
  return setup.placement.stages_of_rank(rank).map((stage) => shares[stage]);
}

/** Microbatches that pass every stage in one step. */
export const passingOf = (setup) => setup.microbatches_of_stage;

/** A share of a peak as a rate; by default the share that the job's computation reaches. */
export const rateText = ({ cluster, compute_efficiency }, peak = cluster.peak_flops_per_s, share = compute_efficiency) => `(${quantity(peak, "FLOP/s")} · ${percent(share)})`;

/** The time of `work` in FLOPs: the sum of its predicted kinds, or at a share of the peak. */
export const timeLine = ({ job, step }, work) =>
  job.parts
    ? sumLine("The predicted time of that work, of everything around it, and of the host.", kindsOf({ step }).map(({ label, seconds: s }) => [label, s]), step.compute_s, seconds)
    : plainLine(
      "At the share of the dense peak that matmuls reach.",
      "FLOP / (peak · share)",
      `${quantity(work, "FLOP")} / ${rateText(job)} = ${seconds(step.compute_s)}`,
    );
