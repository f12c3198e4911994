// What the planner says, as JSON.

import { InputError } from "./engine/errors.js";
import { daysOf, kept } from "./engine/goodput.js";
import { planAll, planJob, termsOf } from "./engine/plan.js";
import { parameter_counts } from "./models/shape/transformer.js";
import { ratesOf } from "./tools/measured_file.js";
import { evaluate } from "./tools/modeler_model.js";
import * as modeler from "./tools/modeler_state.js";
import { fromQuery, planChoices, planSchema, toAddress, ways } from "./tools/planner_state.js";

const fetched = fetch(new URL("catalog.json", import.meta.url)).then((answer) => answer.json());
const NAMES = ["tp", "cp", "pp", "ep", "etp", "dp", "schedule", "chunks", "microbatch_size", "microbatches", "zero_stage", "recompute"];

function plan(catalog, choices, every) {
  try {
    const job = planJob(catalog, choices, every);
    const { layouts, fitting, refused, least_bytes, best, meshes, front, told } = planAll(job);
    const shown = (one) => ({
      ...Object.fromEntries(NAMES.map((name) => [name, one[name]])), step_time_s: one.step_s, memory_bytes: one.memory_bytes,
      terms: termsOf(job, one),
    });
    return {
      layouts, fitting, refused, least_bytes: fitting ? 0 : least_bytes, told, global_batch: job.global_batch,
      schedules: job.schedules, recomputations: job.recompute,
      best: best.slice(0, 40).map(shown), meshes: meshes.map((one) => [one.step_s, one.variants]), front: front.map((one) => [one.step_s, one.memory_bytes]),
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

export const suites = {
  plans: async (cases) => {
    const catalog = await fetched;
    return cases.map(([choices, every]) => plan(catalog, choices, every));
  },
  // A file's rates as the line that an address has, or why there are none.
  rates: async (texts) => texts.map((text) => {
    try {
      return ratesOf(text);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return { error: error.message };
    }
  }),
  addresses: async (queries) => {
    const catalog = await fetched;
    const schema = planSchema(catalog);
    return queries.map((query) => {
      const { state, problems } = fromQuery(schema, catalog, query);
      const address = toAddress(schema, catalog, state);
      const again = fromQuery(schema, catalog, address);
      return { problems, stays: JSON.stringify(again.state) === JSON.stringify(state), ...plan(catalog, planChoices(catalog, state), state.every) };
    });
  },
  opened: async (query) => {
    const catalog = await fetched;
    const { state } = fromQuery(planSchema(catalog), catalog, query);
    const job = planJob(catalog, planChoices(catalog, state), state.every);
    const [best] = planAll(job).best;
    const found = ways(catalog, state, best);
    const there = evaluate(catalog, modeler.fromQuery(modeler.schemaOf(catalog), catalog, found.modeler).a);
    return { ...found, step_time_s: best.step_s, memory_bytes: best.memory_bytes, modeler_s: there.step.step_time_s };
  },
  goodput: async (cases) => {
    const catalog = await fetched;
    return cases.map(([choices, way, failures, tokens, tokensPerStep, step_s]) => {
      const { setup, world } = planJob(catalog, choices);
      const found = kept({ parameters: parameter_counts(setup.shape).total, recipe: setup.recipe }, world, way, failures);
      return { ...found, days: daysOf(found, tokens, tokensPerStep, step_s) };
    });
  },
  // Layouts that are tried in a second, of one search.
  rate: async (choices) => {
    const catalog = await fetched;
    const begun = performance.now();
    const { layouts } = planAll(planJob(catalog, choices));
    return (1000 * layouts) / (performance.now() - begun);
  },
};
