// What the engine says about training steps, as JSON.

import { InputError } from "./engine/errors.js";
import { FORMATS, MODULES } from "./engine/recomputation.js";
import { updateFlops } from "./engine/newton_schulz.js";
import { COUNTED, inWords } from "./engine/rules.js";
import { workedLine } from "./engine/worked.js";
import { setupFrom } from "./engine/predicted.js";
import { timeline, trainingMemory, trainingStep, usualOf } from "./engine/training.js";

const fetched = fetch(new URL("catalog.json", import.meta.url)).then((answer) => answer.json());

function answered(catalog, choices) {
  try {
    const setup = setupFrom(catalog, choices);
    return { step: inWords({ setup, step: trainingStep(setup) }), memory: trainingMemory(setup) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

function drawn(catalog, choices) {
  const setup = setupFrom(catalog, choices);
  const { trace, before_s, after_s } = timeline(setup);
  return {
    before_s, after_s, makespan: trace.makespan,
    first: trace.start.map((lane) => lane[0]), last: trace.end.map((lane) => lane.at(-1)),
    actions: trace.schedule.orders.map((order) => order.length),
    step_time_s: trainingStep(setup).step_time_s,
  };
}

// The median of several evaluations from choices to answer, in milliseconds.
function evaluationTime(catalog, choices) {
  const times = Array.from({ length: 9 }, () => {
    const before = performance.now();
    answered(catalog, choices);
    return performance.now() - before;
  });
  return times.sort((a, b) => a - b)[4];
}

const WEIRD = [
  null, undefined, 0, -1, 1.5, NaN, Infinity, -Infinity, 1e300, 1e-300, 2 ** 20, 2 ** 53, "8", "",
  "x", "__proto__", "constructor", true, [], [8], {}, { layers: 1 }, { peak_flops_per_s: "1" },
];

// Choices that are neither refused in words nor answered in finite numbers; and how many are each.
function hostile(catalog, { base, names }) {
  const found = { answered: 0, refused: 0, wrong: [] };
  for (const name of names) for (const value of WEIRD) {
    try {
      const setup = setupFrom(catalog, { ...base, [name]: value });
      JSON.stringify([trainingStep(setup), trainingMemory(setup)], (_, shown) => {
        if (typeof shown === "number" && !Number.isFinite(shown)) throw new Error("not finite");
        return shown;
      });
      found.answered += 1;
      const usual = usualOf(catalog)[name];
      const same = value === undefined || usual === value;
      const allowed = same || typeof usual === "boolean" || typeof value === "number" || value === null;
      if (!allowed) found.wrong.push([name, String(value), "accepted"]);
    } catch (error) {
      if (error instanceof InputError) found.refused += 1;
      else found.wrong.push([name, String(value), error.message]);
    }
  }
  return found;
}

const each = (answer) => async (given) => {
  const catalog = await fetched;
  return given.map((choices) => answer(catalog, choices));
};

export const training = {
  training: each(answered),
  training_timeline: each(drawn),
  training_hostile: each((catalog, base) =>
    hostile(catalog, { base, names: Object.keys(usualOf(catalog)) })),
  training_update: each((catalog, choices) => {
    const setup = setupFrom(catalog, choices);
    return setup.stagesOf.map((_, rank) => updateFlops(setup, rank));
  }),
  training_speed: each(evaluationTime),
  worked: async (given) => {
    const { notes } = await import("./formula-notes.js");
    return given.map(([name, values, spec]) => {
      const { text, result, symbols } = workedLine(notes, name, values, spec);
      return { text, result, symbols };
    });
  },
  training_names: () => ({
    modules: MODULES,
    formats: Object.fromEntries([...FORMATS].map(([name, format]) => [name, Object.values(format)])),
    conventions: [...COUNTED].map(([name, words]) => [name, ...words]),
  }),
};
