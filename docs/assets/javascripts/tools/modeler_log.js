// Compares a reader's log with the modeler: its step time scales the configuration, its memory is shown next
// to the prediction. Loaded when a text is pasted or dropped.

import { logged_step_s, memory_beside, step_beside } from "../scenarios/taking/log_words.js";
import { button } from "./dom.js";
import { readLog, told } from "./logs.js";
import { fullestOf } from "./modeler_model.js";
import { stepOf } from "./modeler_form.js";

/**
 * The page's report on a log, as elements, or null for other text; `found` is the configuration without a
 * measured step, `scale(seconds)` scales its step to that time, and `judge()` resolves to the verdict.
 */
export function logOf(text, found, scale, judge) {
  const read = readLog(text);
  if (!read || !found.step) return read?.shown ?? null;
  const { log, shown } = read;
  const said = log.rows ? [] : memory_beside(log, fullestOf(found).total_bytes);
  if (log.steps) {
    const { step, setup } = found;
    const seconds = logged_step_s(log, step.tokens_per_step, setup.parallel.world_size, setup.global_batch);
    const beside = step_beside(log, seconds, stepOf(found), setup.global_batch);
    if (beside[0] === "good") scale(seconds);
    said.unshift(beside);
  }
  return [...shown, ...said.map(told), ...(log.steps ? [button("Is my number good?", async () => (await judge()).ask(text))] : [])];
}
