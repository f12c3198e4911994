// Lines behind a difference between two configurations. Pure.

import { MEASURES, shownAs } from "./modeler_measures.js";
import { change } from "./quantities.js";
import { plainLine } from "./worked.js";

/** How `found` differs from `found.before` in a measure, and how its own value is derived. */
export function changeLines(found, notes, measure, howOf) {
  const [label, unit, of, , how] = MEASURES[measure];
  const [before, after] = [of(found.before), of(found)];
  const [old, now] = [before, after].map((value) => shownAs(unit, value));
  const sign = after >= before ? "+" : "−";
  const difference = shownAs(unit, Math.abs(after - before)).replace("%", " points");
  const lines = [plainLine(`${label}: how much it changes.`, "new − old", `${now} − ${old} = ${sign}${difference}`)];
  if (unit !== "%" && before)
    lines.push(plainLine("In relation.", "new / old − 1", `${now} / ${old} − 1 = ${change(after / before - 1)}`));
  return [...lines, ...howOf(how, found, notes)];
}
