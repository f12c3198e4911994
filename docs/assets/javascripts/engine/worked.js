// The worked line of a formula, loaded with the notes when a reader opens a line.

import * as formulas from "../formulas.js";
import { node_of, relation, substituted, taken, text } from "../equations/tree.js";
import { shown } from "../quantity_shown.js";

const mapped = (table, of) => new Map(Object.entries(table).map(([name, value]) => [name, of(value, name)]));

/**
 * The line of formula `name` with `given` arguments, SI numbers: { value, result, text, symbols };
 * `text` is "numbers = result", with ≈ where something is shown rounded, `symbols` the expression
 * itself. `notes` are those of formula-notes.js, `spec` formats the result as figgen.units does.
 */
export function workedLine(notes, name, given, spec = "") {
  const { tree, unit, symbol, doc, source, arguments: known } = notes[name];
  const value = formulas[name](given), node = node_of(tree);
  const values = mapped(known, (_, argument) => given[argument]);
  const written = mapped(known, ([, unitOf], argument) => substituted(unitOf, given[argument]));
  const result = shown(value, unit, spec);
  return {
    name, doc, source, symbol, unit, value, result,
    text: `${text(taken(node, values), written)} ${relation(values, written, result, value)} ${result}`,
    symbols: text(node, mapped(known, ([letters]) => letters)),
  };
}
