// The worked lines of the converter, which load after its first answer.

import { workedLine } from "../engine/worked.js";
import { el } from "./dom.js";

/** The expression of a formula, and the same with the reader's numbers; `notes` are those of formula-notes.js. */
export function line(notes, formula, given) {
  const { symbols, text } = workedLine(notes, formula, given, "si.4");
  return el("small", {}, el("span", {}, symbols), el("span", {}, text),
    el("a", { href: `../../reference/formulas/#${formula}` }, formula.replaceAll("_", " ")));
}
