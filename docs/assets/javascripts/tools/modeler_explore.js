// Variants of a configuration, evaluated when the browser has nothing else to do.

import { bought, candidatesOf, recommend, unitsOf } from "./advice.js";
import { sensitivities, tips } from "./modeler_tips.js";

const SLICE_MS = 8; // of evaluating at a time, so that typing is never held up

/**
 * Returns explore(now, done), which calls `done` with { advice, effects, other }: two lists of
 * elements, and the same step with or without double buffering, where that matters.
 */
export function exploration({ signal, apply, evaluate, catalog }) {
  const sweep = idleSweep(signal);
  return (now, done) =>
    sweep(variants(now, evaluate, catalog), ({ tried, rows, other }) => {
      done({ advice: tips(now, recommend(now, tried), apply), effects: sensitivities(rows), other });
    });
}

// Evaluates variants one by one; what it returns at the end is what they say together.
function* variants(now, evaluate, catalog) {
  const tried = [];
  for (const one of candidatesOf(now)) {
    tried.push({ ...one, found: evaluate({ ...now.state, ...one.changes }) });
    yield;
  }
  const rows = [];
  for (const { tries, name } of unitsOf(now, catalog)) {
    for (const changes of tries) {
      const found = evaluate({ ...now.state, ...changes });
      yield;
      if (found.error) continue;
      rows.push({ name: name(changes), effect: bought(now, found) });
      break;
    }
  }
  const rings = now.setup.parallel.cp > 1 && now.setup.context_exchange === "p2p";
  const other = rings ? evaluate({ ...now.state, double: !now.setup.double_buffering }) : null;
  return { tried, rows, other: other?.error ? null : other };
}

// Runs a generator in idle time, in slices; a new one takes the place of the one before.
function idleSweep(signal) {
  let current = null;
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  return (work, done) => {
    current = work;
    const go = () => {
      const until = performance.now() + SLICE_MS;
      while (current === work && !signal.aborted) {
        const { done: ended, value } = work.next();
        if (ended) {
          done(value);
          return;
        }
        if (performance.now() > until) {
          later(go, { timeout: 500 });
          return;
        }
      }
    };
    later(go, { timeout: 500 });
  };
}
