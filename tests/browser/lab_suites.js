// What the modules of the schedule lab answer to the cases of test_schedule_lab.py, as JSON.

import { InputError } from "./engine/errors.js";
import { slots_csv, torch_listing } from "./models/pipeline/schedule_work.js";
import { critical_path } from "./models/pipeline/trace.js";
import { SCHEMA, commandOf, fromQuery, queryOf, runsOf } from "./tools/lab_state.js";
import { readAddress } from "./tools/state.js";
import { orderText } from "./tools/lab_take.js";

function said(answer) {
  try {
    return answer();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

async function answered(query) {
  const { state, problems } = await readAddress(query, SCHEMA, fromQuery);
  const again = fromQuery(queryOf(state)).state;
  const [run] = runsOf({ ...state, b: "", c: "" });
  const stays = JSON.stringify(again) === JSON.stringify(state);
  if (run.error) return { command: commandOf(run.name, state), problems, stays, error: run.error.message };
  const { schedule, trace, peaks } = run;
  return {
    command: commandOf(run.name, state), problems, stays,
    text: orderText(schedule),
    csv: slots_csv(trace),
    torch: said(() => torch_listing(schedule)),
    answer: {
      order: schedule.orders.map((order) => order.map(String)),
      makespan: trace.makespan,
      bubble_fraction: trace.bubble_fraction,
      bubble_overhead: trace.bubble_overhead,
      bubble_fraction_by_rank: trace.bubble_fraction_by_rank,
      bubble_overhead_by_rank: trace.bubble_overhead_by_rank,
      bubble_fraction_without_flush: trace.bubble_fraction_without_flush,
      peak_in_flight: trace.peak_in_flight,
      critical_path: critical_path(trace).map(({ action }) => String(action)),
      overlapped: Array.from(schedule.overlapped, String).sort(),
      peak_bytes: peaks,
    },
  };
}

export const suites = { answered: (queries) => Promise.all(queries.map(answered)) };
