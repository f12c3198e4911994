// A search of all layouts of a job that can tell how far it is.

import { plain } from "./records.js";
import { fastest } from "../models/planner/fastest.js";
import { pipelines_of, pipelines_tried } from "../models/planner/plan.js";
import { layout_at, no_layout, ranked, terms_at, tried } from "../models/planner/ranking.js";

/** Yields { done, of, layouts, fitting } after each pipeline, and the ranked layouts as `found` at the end. Throws InputError. */
export function* planned(job) {
  const [parts, of] = [[], pipelines_tried(job)];
  let [layouts, fitting] = [0, 0];
  for (const pipeline of pipelines_of(job)) {
    const one = tried(pipeline);
    parts.push(one);
    layouts += pipeline.count;
    fitting += one.places.length;
    yield { done: parts.length, of, layouts, fitting };
  }
  if (!layouts) throw no_layout(job);
  yield { done: of, of, layouts, fitting, found: ranked(parts) };
}

/** All at once, for tests. */
export function planAll(job) {
  let last = null;
  for (const one of planned(job)) last = one;
  return last.found;
}

/** The layout at a place of the ranking as plain data. */
export const layoutOf = (found, place) => ({
  ...layout_at(found, place), step_s: found.step_s[place], memory_bytes: found.memory_bytes[place],
  terms: plain(terms_at(found, place)),
});

/** The fastest layout of a job that fits, as plain data, or null, long before all are counted. Throws InputError. */
export function fastestOf(job) {
  const found = fastest(job);
  return found.fitting ? layoutOf(found, 0) : null;
}
