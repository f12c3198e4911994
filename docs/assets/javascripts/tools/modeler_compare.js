// Two configurations side by side, in numbers and in words. Loaded when a reader compares.

import { MEASURES, shownAs } from "./modeler_measures.js";
import { changesText, resolvedOf } from "./changes.js";
import { el } from "./dom.js";
import { value } from "./modeler_answer.js";
import { note, num, table } from "./modeler_table.js";
import { change } from "./quantities.js";

/** How B differs, the consequences, and every measure of both; B as a variant is "b". */
export function comparison([one, other]) {
  const rows = Object.entries(MEASURES).map(([key, [name, unit, of, better, how]]) => {
    const [a, b] = [of(one), of(other)];
    const ratio = unit === "%" ? b - a : a ? b / a - 1 : 0;
    const same = Math.abs(ratio) < 5e-4;
    const [mark, word] = same ? ["", ""] : verdict(weight(key, better, one, other) * ratio);
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
    note("Marked differences are better or worse in any case; the others depend on your batch, or on other GPUs."),
  ];
}

// 1 if more is better, −1 if less is. With an equal batch a shorter step is better; rates per GPU count for
// neither if B has a different number or kind of GPUs.
function weight(key, better, one, other) {
  if (key === "step") return one.setup.tokens_per_step === other.setup.tokens_per_step ? -1 : 0;
  return PER_GPU.includes(key) && !likeMachines(one, other) ? 0 : better;
}

const PER_GPU = ["throughput", "mfu", "fullest"];
const likeMachines = (one, other) =>
  one.step.world_size === other.step.world_size && one.state.chip === other.state.chip;

function verdict(gain) {
  if (!gain) return ["", ""];
  return gain > 0 ? ["modeler-good", " ▲ better"] : ["modeler-bad", " ▼ worse"];
}

function differences(one, other) {
  const { preset, show, ...changes } = resolvedOf(other);
  return changesText(resolvedOf(one), changes) || "nothing yet";
}

// The consequences in a sentence.
function outcome(one, other) {
  const per = likeMachines(one, other) ? " per GPU" : "";
  const paceOf = ({ step, setup }) => (per ? step.tokens_per_s_per_gpu : setup.tokens_per_step / step.step_time_s);
  const ratio = paceOf(other) / paceOf(one) - 1;
  const said = per ? value(change(ratio), "change:throughput", "b") : `${change(ratio)} tokens/s`;
  const pace = Math.abs(ratio) < 5e-4
    ? [`B trains as fast${per} as A`]
    : ["B is ", ratio > 0 ? "faster" : "slower", `${per} than A, `, said];
  const [a, b] = [one, other].map(({ memory }) => memory.fits);
  if (a === null || b === null) return [...pace, "."];
  if (a === b) return [...pace, a ? "; both fit in memory." : "; neither fits in memory."];
  return [...pace, b ? "; B fits in memory, A does not." : "; A fits in memory, B does not."];
}
