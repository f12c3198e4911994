// The job of an address of the modeler or the planner that is opened in a different tool. Loaded then.

import { catalog } from "../catalog.js";
import { optionsOf, sequenceIn } from "./modeler_options.js";
import { addressKinds, fromQuery, jobRecord, replicasOf, schemaOf } from "./modeler_state.js";
import { readAddress } from "./state.js";

/** Keys of the planner's question. */
export const QUESTION = ["ask", "tokens", "days", "budget", "price", "failures", "chance", "every"];

const schema = schemaOf(catalog);
const kinds = addressKinds(schema);

/** Keys of older addresses. */
export const FORMER = new Set(optionsOf(catalog).flatMap(({ former }) => Object.keys(former ?? {})));

/** All keys of a job. */
export const KEYS = new Set([...Object.keys(kinds), ...FORMER, ...QUESTION]);

/** { job, problems }: a job with the sizes that its preset and the modeler's defaults imply, as the modeler hands it on. */
export async function recordOf(job) {
  const isKept = ([key]) => QUESTION.includes(key) || key === "compare" || key.startsWith("b.");
  const asked = new URLSearchParams([...job].filter((pair) => !isKept(pair))).toString();
  const { a, problems } = await readAddress(asked, kinds, (query) => fromQuery(schema, catalog, query), sequenceIn(catalog));
  const { model, sequence, microbatches, microbatch_size } = a;
  const global_batch = replicasOf(a) * microbatches * microbatch_size;
  const setup = { sequence: sequenceIn(catalog)(new URLSearchParams({ model, sequence: sequence ?? "" })), global_batch };
  const record = jobRecord(schema, catalog, a, Number.isInteger(global_batch) && global_batch ? setup : null);
  return { job: new URLSearchParams([...record, ...[...job].filter(isKept)]), problems };
}
