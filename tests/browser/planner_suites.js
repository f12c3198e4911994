// What the planner says, as JSON.

import { InputError } from "./engine/errors.js";
import { checkpoint_bytes_of, saved_training } from "./models/planner/saving.js";
import { servedBy } from "./engine/job.js";
import { mapped, plain } from "./engine/records.js";
import { layout_data, page_plan, planned } from "./scenarios/tools/page_plan.js";
import { front, layout_at, same_as_best, terms_at } from "./models/planner/ranking.js";
import { TABLES } from "./plan-memory.js";
import { evaluate } from "./tools/modeler_model.js";
import * as modeler from "./tools/modeler_state.js";
import { readAddress } from "./tools/state.js";
import { fromQuery, planChoices, planSchema, searchOf, toAddress, ways } from "./tools/planner_state.js";

const fetched = fetch(new URL("catalog.json", import.meta.url)).then((answer) => answer.json());
const planJob = (catalog, choices, { every, chance } = {}) => page_plan(servedBy(catalog), mapped(choices), every, chance);
const planAll = (job) => [...planned(job)].at(-1).found;

function plan(catalog, choices, { every, chance }) {
  try {
    const { job, about } = planJob(catalog, choices, { every, chance });
    const found = planAll(job);
    const { layouts, fitting, refused, least_bytes, step_s, memory_bytes, meshes } = found;
    const best = Array.from({ length: Math.min(40, fitting) }, (_, place) => ({ ...layout_at(found, place) }));
    return {
      layouts, fitting, refused: plain(refused), least_bytes, step_s: [...step_s], memory_bytes: [...memory_bytes],
      meshes: [...meshes], front: front(found), same: same_as_best(found, ...about.interval.residuals),
      best, terms: best.map((_, place) => plain(terms_at(found, place))),
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

export const suites = {
  plans: async (cases) => {
    const catalog = await fetched;
    return cases.map(([choices, every]) => plan(catalog, choices, { every }));
  },
  addresses: async (queries) => {
    const catalog = await fetched;
    const schema = planSchema(catalog);
    return Promise.all(queries.map(async (query) => {
      const { state, problems } = await readAddress(query, schema, (given) => fromQuery(schema, catalog, given));
      const address = toAddress(schema, catalog, state);
      const again = fromQuery(schema, catalog, address);
      return { problems, batch: state.global_batch, stays: JSON.stringify(again.state) === JSON.stringify(state), ...plan(catalog, planChoices(catalog, state), searchOf(state)) };
    }));
  },
  opened: async (query) => {
    const catalog = await fetched;
    const { state } = fromQuery(planSchema(catalog), catalog, query);
    const { job } = planJob(catalog, planChoices(catalog, state), searchOf(state));
    const best = plain(layout_data(planAll(job), 0));
    const found = ways(catalog, state, best);
    const there = evaluate(catalog, modeler.fromQuery(modeler.schemaOf(catalog), catalog, found.modeler).a);
    return { ...found, step_time_s: best.step_s, memory_bytes: best.memory_bytes, modeler_s: there.step.step_time_s };
  },
  goodput: async (cases) => {
    const catalog = await fetched;
    return cases.map(([choices, way, failures, tokens, tokensPerStep, step_s]) => {
      const { setup } = planJob(catalog, choices).job;
      const found = saved_training(way, checkpoint_bytes_of(setup), setup.parallel.world_size, TABLES.failures[failures][1]);
      return { ...found, days: found.days(tokens, tokensPerStep, step_s) };
    });
  },
  // Layouts that are tried in a second, of one search.
  rate: async (choices) => {
    const catalog = await fetched;
    const begun = performance.now();
    const { layouts } = planAll(planJob(catalog, choices).job);
    return (1000 * layouts) / (performance.now() - begun);
  },
};
