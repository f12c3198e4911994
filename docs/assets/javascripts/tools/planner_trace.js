// The trace of a layout that the planner found, and the file that starts it, by the modeler's query
// for it; loaded on demand.

import { evaluate } from "./modeler_model.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { traceText } from "./trace_export.js";

export { writeBox } from "./write_out.js";

/** The trace of what a query of the modeler says, as text; throws InputError where it says none. */
export const traceOfQuery = (catalog, query) => traceText(jobOfQuery(catalog, query));

/** The job of a query of the modeler; throws InputError where it says none. */
export function jobOfQuery(catalog, query) {
  const { a } = fromQuery(schemaOf(catalog), catalog, query);
  const found = evaluate(catalog, a);
  if (found.error) throw found.error;
  return found.job;
}
