// The traces that the tools write, for the cases of test_traces.py, as JSON.

import { together, traceText } from "./tools/trace_export.js";
import { scheduleTrace } from "./tools/lab_trace.js";
import { traceOfQuery } from "./tools/planner_trace.js";
import { commandOf, fromQuery as labQuery, runsOf } from "./tools/lab_state.js";
import { traceCommand } from "./tools/modeler_command.js";
import { evaluate } from "./tools/modeler_model.js";
import { fromQuery, schemaOf } from "./tools/modeler_state.js";

let catalog = null;

async function steps(queries) {
  catalog ??= await (await fetch("catalog.json")).json();
  return queries.map((query) => {
    const { a } = fromQuery(schemaOf(catalog), catalog, query);
    const { job, step } = evaluate(catalog, a);
    const text = traceText(job);
    return {
      text, step_time_s: step.step_time_s,
      command: `${traceCommand(a, catalog)}${together(job) ? " --together" : ""}`,
      // By the same functions: of the long ones it would only take long.
      planned: text.length > 1e6 || traceOfQuery(catalog, query) === text,
    };
  });
}

const schedules = (queries) => queries.map((query) => {
  const { state } = labQuery(query);
  const [run] = runsOf({ ...state, b: "", c: "" });
  return { trace: JSON.parse(scheduleTrace(run.trace)), command: `${commandOf(run.name, state)} --as trace` };
});

export const suites = { steps, schedules };
