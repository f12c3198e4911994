// Explore with fields for a figure's own parameters: what is printed of its function and of the drawing
// for Plotly computes it again for every change. Loaded when a reader explores such a figure.

import { InputError } from "../engine/errors.js";
import { all_reduce_factor } from "../figures/collectives/ring_costs.js";
import { critical_batch } from "../figures/data_parallel/costs.js";
import { moe_balance } from "../figures/experts/balance.js";
import { all_to_all_by_fabric } from "../figures/mesh/fabrics.js";
import { pipeline_latency } from "../figures/pipeline/limits.js";
import { bubble_curves, in_flight_by_rank, in_flight_over_time, pipeline_timeline, schedules_compared } from "../figures/pipeline/timelines.js";
import { schedule_frontier } from "../figures/pipeline/zero_bubble.js";
import { bytes_by_recipe } from "../figures/precision/costs.js";
import { loss_by_parameters } from "../figures/training/growth.js";
import { state_redundancy } from "../figures/zero/stages.js";
import { readParameter, shownParameter } from "./explore_parameters.js";
import { redrawn } from "./explore_drawn.js";
import { el, field } from "./dom.js";

/** Name of a figure → its function, which takes its parameters in their order. */
export const FIGURES = {
  "all-reduce-factor": all_reduce_factor, "all-to-all-by-fabric": all_to_all_by_fabric, "bubble-curves": bubble_curves,
  "bytes-by-recipe": bytes_by_recipe, "critical-batch": critical_batch, "in-flight-by-rank": in_flight_by_rank,
  "in-flight-over-time": in_flight_over_time, "moe-balance": moe_balance, "loss-by-parameters": loss_by_parameters,
  "pipeline-latency": pipeline_latency, "pipeline-timeline": pipeline_timeline, "schedule-frontier": schedule_frontier,
  "schedules-compared": schedules_compared, "state-redundancy": state_redundancy,
};

/** The figure for other values: { data, layout } of Plotly. Throws InputError. */
export const recomputed = (name, values) => redrawn(FIGURES[name](...values));

/** A form for the parameters of a figure as its file tells them; `show` draws what it is given. */
export function begin({ figure, parameters }, show) {
  const values = parameters.map(({ value }) => value);
  const told = el("p", { class: "fig-told", role: "status" });
  const change = (at, input) => {
    const parameter = parameters[at];
    try {
      values[at] = readParameter(parameter, input.value);
      show(recomputed(figure, values));
      input.removeAttribute("aria-invalid");
      told.textContent = "Computed again for these values; the caption describes the published ones.";
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      input.setAttribute("aria-invalid", "true");
      told.textContent = error.message;
    }
  };
  const fields = parameters.flatMap((parameter, at) => {
    if (!parameter.kind) return [];
    const input = el("input", { name: parameter.name, value: shownParameter(parameter), spellcheck: "false", autocomplete: "off" });
    input.addEventListener("change", () => change(at, input));
    return field(parameter.name.replace(/_bytes_per_s$|_flops_per_s$|_bytes$|_s$/, "").replaceAll("_", " "), input);
  });
  return el("form", { class: "fig-parameters", on: { submit: (event) => event.preventDefault() } }, fields, told);
}
