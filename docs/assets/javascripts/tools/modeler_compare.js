// Two configurations side by side, in numbers and in words. Loaded when a reader compares.

import { MEASURES, shownAs } from "./modeler_measures.js";
import { changesText, resolvedOf } from "./changes.js";
import { el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { note, num, table } from "./modeler_table.js";
import { change } from "./quantities.js";

/** What B does differently, what comes of it, and every measure of both; B as a variant is "b". */
export function comparison([one, other]) {
  const rows = Object.entries(MEASURES).map(([key, [name, unit, of, better, how]]) => {
    const [a, b] = [of(one), of(other)];
    const ratio = unit === "%" ? b - a : a ? b / a - 1 : 0;
    const same = Math.abs(ratio) < 5e-4;
    const [mark, word] = same ? ["", ""] : verdict(better * ratio);
    const moved = unit === "%" ? change(ratio).replace("%", " points") : change(ratio);
    return el(
      "tr",
      {},
      el("th", { scope: "row", class: "modeler-wide" }, name),
      num(value(shownAs(unit, a), how, 0)),
      num(value(shownAs(unit, b), how, 1)),
      el(
        "td",
        { class: `num ${mark}` },
        same ? "same" : [value(moved, `change:${key}`, "b"), word && el("span", { class: "modeler-word-of" }, word)],
      ),
    );
  });
  return [
    el("p", {}, el("strong", {}, "B differs from A in "), differences(one, other), "."),
    el("p", {}, outcome(one, other)),
    table("Two configurations side by side", ["measure", "#A", "#B", "#B against A"], rows),
    note("Only differences that are better or worse in any case are marked; the others depend on your batch."),
  ];
}

function verdict(gain) {
  if (!gain) return ["", ""];
  return gain > 0 ? ["modeler-good", " ▲ better"] : ["modeler-bad", " ▼ worse"];
}

function differences(one, other) {
  const { preset, show, ...changes } = resolvedOf(other);
  return changesText(resolvedOf(one), changes) || "nothing yet";
}

// What comes of it, in a sentence.
function outcome(one, other) {
  const ratio = other.step.tokens_per_s_per_gpu / one.step.tokens_per_s_per_gpu - 1;
  const same = Math.abs(ratio) < 5e-4;
  const pace = same
    ? ["B trains as fast per GPU as A"]
    : ["B is ", ratio > 0 ? "faster" : "slower", " per GPU than A, ", value(change(ratio), "change:throughput", "b")];
  const [a, b] = [one, other].map(({ memory }) => memory.fits);
  if (a === null || b === null) return [...pace, "."];
  if (a === b) return [...pace, a ? "; both fit in memory." : "; neither fits in memory."];
  return [...pace, b ? "; B fits in memory, A does not." : "; A fits in memory, B does not."];
}
