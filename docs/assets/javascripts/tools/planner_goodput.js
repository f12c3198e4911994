// The planner's panel of failures: goodput, and days of a layout for a number of tokens.

import { CONFIDENCE, WAYS, saved_training } from "../models/planner/saving.js";
import { TABLES } from "../plan-memory.js";
import { el, field, selectField } from "./dom.js";
import { note, num, table } from "./modeler_table.js";
import { nameOf } from "./planner_table.js";
import { bytes, percent, plainNumber, seconds } from "./quantities.js";

const CHOICES = 12; // fastest layouts that may be chosen
const [LEAST, MOST] = [1, 1e9]; // billions of tokens

/** Returns { element, show(state, found) }; `onChange` receives the part of the state that a reader changed. */
export function goodputPanel(onChange) {
  let [state, found, at] = [null, null, 0];
  const tokens = el("input", {
    type: "number", min: LEAST, max: MOST, step: "any", inputmode: "decimal", name: "tokens",
    on: {
      change: () => {
        const value = Number(tokens.value);
        if (value >= LEAST && value <= MOST) take({ tokens: value });
        else tokens.value = state.tokens;
      },
    },
  });
  const take = (changes) => {
    state = { ...state, ...changes };
    onChange(changes);
    draw();
  };
  const failures = selectField("Fails as", {
    name: "failures", value: "", options: Object.entries(TABLES.failures).map(([name, [title]]) => [name, title]),
    onChange: (name) => take({ failures: name }),
  });
  const layout = selectField("Layout", { name: "layout", value: "", options: [], onChange: (place) => { at = Number(place); draw(); } });
  const answer = el("div");
  const fields = el("div", { class: "tool-fields" }, layout.box, field("Training tokens, billions", tokens), failures.box);
  const element = el("div", { class: "plan-goodput" });

  function draw() {
    const row = found.best[at];
    const [, mtbf] = TABLES.failures[state.failures];
    const ways = [...WAYS.keys()].map((way) => saved_training(way, found.checkpoint_bytes, found.gpus, mtbf));
    const [first] = ways;
    const times = [1, ...found.interval].map((factor) => row.step_s * factor);
    answer.replaceChildren(
      note(`At this failure rate, a job of ${plainNumber(found.gpus)} GPUs stops every ${seconds(first.mtbf_s)}. A checkpoint takes ${bytes(first.checkpoint_bytes)}; ${plainNumber(first.spares)} spare nodes are enough ${percent(CONFIDENCE, 0)} of the time.`),
      table("Goodput with failures", ["Saved", "#Stall", "#Save every", "#Goodput", "#Days"], ways.map((one) => {
        const [days, low, high] = times.map((step_s) => one.days(state.tokens * 1e9, found.global_batch * found.sequence, step_s));
        return el("tr", {},
          el("th", { scope: "row" }, WAYS.get(one.way)), num(seconds(one.saving.stall_s)), num(seconds(one.interval_s)),
          num(percent(one.goodput)), num(plainNumber(days), el("small", {}, `${plainNumber(low)} to ${plainNumber(high)}`)));
      })));
  }

  return {
    element,
    show(now, given) {
      [state, found, at] = [now, given, 0];
      tokens.value = state.tokens;
      failures.select.value = state.failures;
      layout.select.replaceChildren(...found.best.slice(0, CHOICES).map((row, place) => el("option", { value: place }, nameOf(row))));
      draw();
      if (!element.firstChild) element.append(fields, answer); // before that, nothing can be asked
    },
  };
}
