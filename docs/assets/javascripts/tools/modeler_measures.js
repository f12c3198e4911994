// The measures by which configurations are compared. Pure.

import { sum } from "../engine/runtime.js";
import { MFU_LABEL } from "../models/step/compute.js";
import { fullestOf, mfuOf } from "./modeler_model.js";
import { percent, plainNumber, quantity } from "./quantities.js";

const sentBytes = ({ step }) => sum(step.communication.map((row) => row.sent_bytes));

const totalExposed = ({ step }) => sum(Object.values(step.exposed_s));

/**
 * The measures by which configurations are compared: [label, unit, value of a configuration,
 * 1 if more of it is better and −1 if less is, the key of its worked line].
 */
export const MEASURES = {
  throughput: ["tokens/s per GPU", "1", ({ step }) => step.tokens_per_s_per_gpu, 1, "throughput"],
  mfu: [MFU_LABEL, "%", mfuOf, 1, "mfu"],
  step: ["step time", "s", ({ step }) => step.step_time_s, 0, "step"],
  tokens: ["tokens per step", "token", ({ setup }) => setup.tokens_per_step, 0, "batch"],
  computing: ["computing", "s", ({ step }) => step.compute_s + step.recompute_s, 0, "computing"],
  bubble: ["bubble_fraction of the step", "%", ({ step }) => step.bubble_fraction, -1, "bubble"],
  fraction: ["bubble_fraction of the schedule", "%", ({ pipeline }) => pipeline.bubble_fraction, -1, "fraction"],
  exposed: ["exposed communication", "s", totalExposed, 0, "exposed"],
  sent: ["sent per GPU per step", "B", sentBytes, 0, "sent"],
  fullest: ["fullest GPU", "B", (found) => fullestOf(found).total_bytes, -1, "fullest"],
  world: ["GPUs", "1", ({ step }) => step.world_size, 0, "world"],
};

/** A value of a measure as a reader sees it. */
export const shownAs = (unit, value) => {
  if (unit === "%") return percent(value);
  return unit === "1" ? plainNumber(value) : quantity(value, unit, unit === "token" ? "si" : "");
};
