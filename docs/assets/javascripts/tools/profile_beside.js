// A recorded rank beside the step that the modeler computes for an address of it; mirrors the part of
// figgen.models.profiles.profile_beside that compares with the model. Loaded when a reader gives an address.

import { catalog } from "../catalog.js";
import { total } from "../engine/intervals.js";
import { evaluate } from "./modeler_model.js";
import { fromQuery, schemaOf } from "./modeler_state.js";
import { time } from "./profile_words.js";
import { percent } from "./quantities.js";

const AXES = ["dp", "etp", "tp", "cp", "ep"];

/** What the modeler says of an address or its query: { setup, step }, or { error }; with `problems` of the address. */
export function modelled(address) {
  const { a, problems } = fromQuery(schemaOf(catalog), catalog, address.slice(address.indexOf("?") + 1).replace(/#.*/, ""));
  return { ...evaluate(catalog, a), problems };
}

/**
 * Parts of a rank's step beside the model's, { part, recorded_s, modelled_s, page }, the largest
 * difference first; `pages` has the page about each part. What a pipeline waits for is one part.
 */
export function beside(rank, step, pages) {
  const exposed = { ...Object.fromEntries([...AXES, "pp", "other"].map((axis) => [axis, 0])), ...Object.fromEntries(rank.exposed_by_axis) };
  const rows = [
    ["computing", "computing", rank.computing_s, step.compute_s + step.recompute_s],
    ...AXES.map((axis) => [axis, `exposed ${axis}`, exposed[axis], step.exposed_s[axis]]),
    ["pipeline", "pipeline idle and messages", exposed.pp + rank.idle_s, step.exposed_s.pp + step.bubble_s],
    ["launch", "kernels not launched yet", rank.launch_s, 0],
    ["copies", "copies alone", rank.copies_s, 0],
    ["other", "exposed in groups without a telling name", exposed.other, 0],
    ["twice", "exposed calls at the same time", rank.exposed_s - total(Object.values(exposed)), 0],
  ].map(([key, part, recorded, modelled_s]) => ({ part, recorded_s: recorded / rank.steps, modelled_s, page: pages[key].page }));
  const least = (1e-9 * rank.wall_s) / rank.steps;
  const more = ({ recorded_s, modelled_s }) => Math.abs(recorded_s - modelled_s);
  return rows.filter(({ recorded_s, modelled_s }) => Math.max(Math.abs(recorded_s), modelled_s) > least).sort((one, other) => more(other) - more(one));
}

const signed = (value, text) => (value < 0 ? "-" : "+") + text(Math.abs(value));

/** These parts as rows of a table, and the whole step last. */
export function besideRows(rank, rows) {
  const step = [rank.wall_s / rank.steps, total(rows.map(({ modelled_s }) => modelled_s))];
  return [
    ["part of the step", "see", "recorded", "modelled", "more"],
    ...rows.map(({ part, page, recorded_s, modelled_s }) =>
      [part, page, time(recorded_s), time(modelled_s), signed(recorded_s - modelled_s, time)]),
    ["step", "", ...step.map(time), signed(step[0] / step[1] - 1, percent)],
  ];
}
