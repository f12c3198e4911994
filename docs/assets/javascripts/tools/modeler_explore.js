// Evaluates variants of a configuration when the browser is idle.

import { bought, candidatesOf, pairsOf, recommend, unitsOf } from "./advice.js";
import { sensitivities, tips } from "./modeler_tips.js";
import { plainNumber } from "./quantities.js";

const SLICE_MS = 8; // of evaluation at a time, so that typing is never delayed

/**
 * Returns explore(now, at, done), which calls `done` with { advice, effects, other, chunked,
 * variants }: two lists of elements, the same step with or without double buffering where that
 * matters, steps with other numbers of chunks, and every variant that is shown, by its name.
 */
export function exploration({ signal, apply, evaluate, catalog }) {
  const sweep = idleSweep(signal);
  return (now, at, done) =>
    sweep(variants(now, evaluate, catalog), ({ tried, rows, missing, other }) => {
      const found = recommend(now, tried);
      const chunked = chunkedOf(now, tried);
      const shown = {
        o: other,
        ...named("t", found),
        ...named("u", rows),
        ...Object.fromEntries(chunked.map(([, one, name]) => [name, one])),
      };
      done({
        advice: tips(now, found, at, apply),
        effects: sensitivities(rows, missing, now.memory.fits),
        other,
        chunked,
        variants: shown,
      });
    });
}

const named = (letter, rows) => Object.fromEntries(rows.map(({ found }, index) => [`${letter}${index}`, found]));

// The tried interleavings, as [chunks, found, name].
function chunkedOf({ pipeline, state }, tried) {
  if (pipeline.stages < 2 || !["1f1b", "interleaved-1f1b"].includes(state.schedule)) return [];
  return tried
    .filter(({ kind, found }) => ["1f1b", "interleaved-1f1b"].includes(kind) && !found.error)
    .map(({ found }) => [found.pipeline.chunks, found, `c${found.pipeline.chunks}`]);
}

// Evaluates variants one by one, and finally returns their joint results.
function* variants(now, evaluate, catalog) {
  const tried = [];
  for (const one of [...candidatesOf(now), ...pairsOf(now)]) {
    tried.push({ ...one, found: evaluate({ ...now.state, ...one.changes }, now.job) });
    yield;
  }
  const [rows, missing] = [[], []];
  for (const { label, tries, name } of unitsOf(now, catalog)) {
    const before = rows.length;
    for (const changes of tries) {
      const found = evaluate({ ...now.state, ...changes }, now.job);
      yield;
      if (found.error) continue;
      rows.push({ name: `${name(changes)}${otherBatch(now, found)}`, effect: bought(now, found), found });
      break;
    }
    if (rows.length === before) missing.push(label);
  }
  const { parallel, context_exchange, gathers: gathered, dense_shards } = now.setup;
  const rings = parallel.cp > 1 && context_exchange === "p2p";
  const gathers = gathered > 0 && dense_shards > 1;
  const other = rings || gathers ? evaluate({ ...now.state, double: !now.setup.double_buffering }, now.job) : null;
  return { tried, rows, missing, other: other?.error ? null : other };
}

// Steps of a different batch cannot be compared: they do different work.
function otherBatch({ setup: { global_batch: before } }, { setup: { global_batch: after } }) {
  return before === after ? "" : ` (batch ${plainNumber(before)} → ${plainNumber(after)})`;
}

// Runs a generator in idle time, in slices; a new one replaces the previous one.
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
