// The trace of a layout that the planner found, by the modeler's query for it; loaded on demand.

import { evaluate } from "./modeler_model.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { traceText } from "./trace_export.js";

/** The trace of what a query of the modeler says, as text; throws InputError where it says none. */
export function traceOfQuery(catalog, query) {
  const { a } = fromQuery(schemaOf(catalog), catalog, query);
  const found = evaluate(catalog, a);
  if (found.error) throw found.error;
  return traceText(found.job);
}
