// A log that a reader brings to the modeler: its step scales the configuration, its memory stands beside the
// predicted one. Loaded when a text is pasted or dropped.

import { logged_step_s, memory_beside, step_beside } from "../scenarios/taking/log_words.js";
import { button } from "./dom.js";
import { readLog, told } from "./logs.js";
import { fullestOf } from "./modeler_model.js";
import { stepOf } from "./modeler_form.js";

/**
 * What the page says of a log, as elements, null for another text; `found` is the configuration without a
 * measured step, `scale(seconds)` makes a step of it take so long, and `judge()` resolves to what says whether that is good.
 */
export function logOf(text, found, scale, judge) {
  const read = readLog(text);
  if (!read || !found.step) return read?.shown ?? null;
  const { log, shown } = read;
  const said = log.rows ? [] : memory_beside(log, fullestOf(found).total_bytes);
  if (log.steps) {
    const { step, setup } = found;
    const seconds = logged_step_s(log, step.tokens_per_step, setup.parallel.world_size);
    const beside = step_beside(log, seconds, stepOf(found), setup.global_batch);
    if (beside[0] === "good") scale(seconds);
    said.unshift(beside);
  }
  return [...shown, ...said.map(told), ...(log.steps ? [button("Is my number good?", async () => (await judge()).ask(text))] : [])];
}
