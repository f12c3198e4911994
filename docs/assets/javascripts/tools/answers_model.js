// What a reader's answer to a question of a page is worth; slips are the same formula with one input
// changed. Pure.

import { InputError } from "../engine/errors.js";
import * as formulas from "../formulas.js";
import { Candidate, expected_of, graded, slipped } from "../scenarios/tools/graded.js";
import { plainNumber, quantity } from "./quantities.js";

// The value of a tree: a number, or a formula's name with trees as arguments.
function computed(tree) {
  if (!Array.isArray(tree)) return tree;
  const [name, given] = tree;
  return formulas[name](argumentsOf(given));
}

/** The arguments of a formula as numbers. */
export const argumentsOf = (given) => Object.fromEntries(Object.entries(given).map(([key, one]) => [key, computed(one)]));

// A tree and all trees in it, each with what puts another one in its place.
function* parts(tree, put = (other) => other) {
  if (!Array.isArray(tree)) return;
  const [name, given] = tree;
  yield { name, given, put: (changed) => put([name, changed]) };
  for (const [key, one] of Object.entries(given)) yield* parts(one, (other) => put([name, { ...given, [key]: other }]));
}

// What slips would answer: the same tree with one argument changed.
function candidates(tree) {
  const found = [];
  for (const { name, given, put } of parts(tree)) {
    for (const { argument, value, why } of slipped(name, new Map(Object.entries(argumentsOf(given))))) {
      const changed = { ...given, [argument]: value };
      const answer = computed(put(changed));
      // Formulas don't check their domain; outside of it their own value is no number.
      if (Number.isFinite(computed([name, changed])) && Number.isFinite(answer)) found.push(new Candidate(answer, why));
    }
  }
  return found;
}

/** The verdict on `text`: { right, words }. */
export function verdict(asked, tree, text) {
  const answer = computed(tree);
  const shown = quantity(answer, asked.unit, asked.spec);
  try {
    const grade = graded(text, asked.unit, answer, shown, candidates(tree));
    if (grade.right) return { right: true, words: `Right: ${shown}.` };
    return { right: false, words: grade.why ? `Not quite. ${grade.why}` : offBy(grade.ratio) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { right: false, words: `Please answer with ${expected_of(asked.unit)}.` };
  }
}

const offBy = (ratio) => (ratio > 1
  ? `Not quite: that is ${plainNumber(ratio, 2)} times the right answer.`
  : `Not quite: the right answer is ${plainNumber(1 / ratio, 2)} times as much.`);
