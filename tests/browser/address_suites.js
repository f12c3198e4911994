// How the tools share out an address, for test_job_addresses.py, as JSON.

import { KEYS, QUESTION } from "./tools/address_job.js";
import { VIEWS, sorted } from "./tools/address_read.js";
import { FIRST } from "./tools/converter_model.js";
import { SCHEMA } from "./tools/lab_state.js";
import { schemaOf as mapSchema } from "./tools/map_state.js";
import { addressKinds, schemaOf } from "./tools/modeler_state.js";
import { planSchema } from "./tools/planner_state.js";

const catalog = fetch(new URL("catalog.json", import.meta.url)).then((answer) => answer.json());

async function kindsOf(layouts) {
  const found = await catalog;
  return {
    modeler: addressKinds(schemaOf(found)), planner: planSchema(found), "rank-map": mapSchema(layouts),
    schedules: { ...SCHEMA, moves: {} }, converter: FIRST,
  };
}

export const suites = {
  /** What each tool takes of each address, what it carries, and what it says. */
  shared: async ([layouts, addresses]) => {
    const kinds = await kindsOf(layouts);
    const each = (tool, address) => sorted(address, kinds[tool]).then(({ query, job, problems }) =>
      ({ taken: [...new URLSearchParams(query)].filter(([key]) => key in kinds[tool] || key.startsWith("b.")), job: [...job], problems }));
    const tools = Object.keys(kinds);
    return Promise.all(tools.map(async (tool) => [tool, await Promise.all(addresses.map((address) => each(tool, address)))])).then(Object.fromEntries);
  },
  /** The keys of every tool that no list of keys has. */
  unlisted: async (layouts) => Object.values(await kindsOf(layouts)).flatMap((kinds) => Object.keys(kinds))
    .filter((key) => !VIEWS.includes(key) && !KEYS.has(key)),
  /** The planner's own keys that are not among those of its question. */
  unasked: async (layouts) => {
    const { modeler, planner } = await kindsOf(layouts);
    return [Object.keys(planner).filter((key) => !(key in modeler) && !QUESTION.includes(key)), QUESTION.filter((key) => !(key in planner))];
  },
};
