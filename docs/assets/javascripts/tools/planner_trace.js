// The trace of a layout that the planner found, and its launch file, from the modeler's query; loaded on
// demand.

import { evaluate } from "./modeler_model.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { traceText } from "./trace_export.js";

export { writeBox } from "./write_out.js";

/** The trace of a modeler query's job, as text; throws InputError if the job is invalid. */
export const traceOfQuery = (catalog, query) => traceText(jobOfQuery(catalog, query));

/** The job of a modeler query; throws InputError if it is invalid. */
export function jobOfQuery(catalog, query) {
  const { a } = fromQuery(schemaOf(catalog), catalog, query);
  const found = evaluate(catalog, a);
  if (found.error) throw found.error;
  return found.job;
}
