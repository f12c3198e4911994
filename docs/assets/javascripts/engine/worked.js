// The worked line of a formula: its own expression with a reader's numbers and units in it, word
// for word as figgen.equations.worked prints it; mirrors also figgen.equations.text and the part of
// figgen.units that shows numbers. Loaded with the notes when a reader opens a line.

import * as formulas from "../formulas.js";
import { quantity, plainNumber, powerOfTen, significantDigits } from "./quantity.js";

const NBSP = "\u00a0";

/**
 * The line of formula `name` with `given` arguments, SI numbers: { value, result, text, symbols };
 * `text` is "numbers = result", with ≈ where something is shown rounded, `symbols` the expression
 * itself. `notes` are those of formula-notes.js, `spec` formats the result as figgen.units does.
 */
export function workedLine(notes, name, given, spec = "") {
  const { tree, unit, symbol, doc, source, arguments: known } = notes[name];
  const value = formulas[name](given);
  const result = quantity(value, unit, spec);
  const shown = {};
  let exact = isClose(result.read, value);
  for (const [argument, [, unitOf]] of Object.entries(known)) {
    const found = substituted(unitOf, given[argument]);
    shown[argument] = found.text;
    exact &&= isClose(found.read, given[argument]);
  }
  const line = text(taken(tree, given), (argument) => shown[argument]);
  return {
    name, doc, source, symbol, unit, value,
    result: result.text,
    text: `${line} ${exact ? "=" : "≈"} ${result.text}`,
    symbols: text(tree, (argument) => known[argument][0]),
  };
}

const isClose = (read, value) => {
  const most = Math.max(Math.abs(read), Math.abs(value));
  return read === value || Math.abs(read - value) <= 1e-12 * most;
};

const COUNTED = new Set(["rank", "GPU", "node", "stage", "microbatch", "chunk", "layer", "head",
  "expert", "sequence", "sample", "step", "bucket", "segment", "link", "port", "slot", "group",
  "replica", "message", "param", "token", "element", "1"]);
const MEASURED = new Set(["B", "s", "FLOP", "W", "J", "Hz"]);

// The argument as it stands in the line: up to six digits, its unit without counts ("2 B").
function substituted(unit, value) {
  const [above, ...words] = unit.split("/");
  const below = words.filter((word) => !COUNTED.has(word));
  const kept = [COUNTED.has(above) && !below.length ? "1" : above, ...below].join("/");
  let found;
  if (kept !== "1") {
    const prefixed = MEASURED.has(kept.split("/")[0]) && kept !== "FLOP/B";
    found = quantity(value, kept, prefixed ? "si.6" : "unit.6");
  } else {
    const round = Math.abs(value) >= 1e6 && significantDigits(value) <= 6;
    found = { text: round ? powerOfTen(value, 6) : plainNumber(value, 6) };
    found.read = quantity.read(found.text);
  }
  return value < 0 ? { ...found, text: `(${found.text})` } : found;
}

// The tree with the branch that was computed in the place of a choice between expressions.
function taken(node, given) {
  if (!Array.isArray(node)) return node;
  const [sign, ...operands] = node;
  const inner = operands.map((operand) => taken(operand, given));
  if (sign === "where") {
    const chosen = evaluated(inner[0], given) ? inner[1] : inner[2];
    if (typeof chosen !== "number") return chosen;
  }
  return [sign, ...inner];
}

const OPERATIONS = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b), "%": (a, b) => ((a % b) + b) % b, "**": Math.pow,
  "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
  ">": (a, b) => a > b, ">=": (a, b) => a >= b, and: (...all) => all.every(Boolean),
  or: (...all) => all.some(Boolean), neg: (a) => -a, minimum: Math.min, maximum: Math.max,
  ceil: Math.ceil, floor: Math.floor, log2: Math.log2, sqrt: Math.sqrt,
  exp: Math.exp,
  where: (condition, a, b) => (condition ? a : b),
};

function evaluated(node, given) {
  if (typeof node === "string") return given[node];
  if (!Array.isArray(node)) return node;
  return OPERATIONS[node[0]](...node.slice(1).map((operand) => evaluated(operand, given)));
}

// How tightly each construct binds; an operand that binds less than its place gets parentheses.
const [OR, AND, COMPARE, SUM, PRODUCT, SIGN, POWER, ATOM] = [0, 1, 2, 3, 4, 5, 6, 7];
const BINDING = {
  "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": ATOM, "**": POWER, and: AND, or: OR,
  "%": COMPARE, neg: SUM,
};
const COMPARISONS = { "==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥" };
const SIGNS = { "+": "+", "-": "−", "*": "·", "/": "/" };
const CALLS = {
  minimum: (a, b) => `min(${a}, ${b})`, maximum: (a, b) => `max(${a}, ${b})`,
  ceil: (a) => `⌈${a}⌉`, floor: (a) => `⌊${a}⌋`, log2: (a) => `log₂(${a})`, sqrt: (a) => `√(${a})`,
  exp: (a) => `e^(${a})`,
  where: (condition, a, b) => `(${a} if ${condition}, else ${b})`,
};

const binding = (node) => {
  if (!Array.isArray(node)) return ATOM;
  return BINDING[node[0]] ?? (node[0] in COMPARISONS ? COMPARE : ATOM);
};

function text(node, leaf) {
  if (typeof node === "string") return leaf(node);
  if (typeof node === "number") return constant(node);
  const [sign, ...operands] = node;
  const show = (operand, least) => {
    const shown = text(operand, leaf);
    const lone = !Array.isArray(operand) && shown.includes(NBSP);
    const tight = lone ? (shown.includes("×") ? PRODUCT : POWER) : binding(operand);
    return tight >= least ? shown : `(${shown})`;
  };
  const [left, right] = operands;
  if (sign in CALLS) return CALLS[sign](...operands.map((operand) => text(operand, leaf)));
  if (sign === "neg") return `−${show(left, POWER)}`;
  if (sign === "//") return `⌊${show(left, PRODUCT)} / ${show(right, SIGN)}⌋`;
  if (sign === "%") return `${show(left, PRODUCT)} mod ${show(right, SIGN)}`;
  if (sign === "**") return `${show(left, ATOM)}^${show(right, ATOM)}`;
  if (sign === "and" || sign === "or") {
    return operands.map((operand) => show(operand, COMPARE)).join(` ${sign} `);
  }
  if (sign in COMPARISONS) {
    return `${show(left, COMPARE)} ${COMPARISONS[sign]} ${show(right, COMPARE)}`;
  }
  const least = BINDING[sign];
  const associative = sign === "+" || sign === "*";
  return `${show(left, least)} ${SIGNS[sign]} ${show(right, least + (associative ? 0 : 1))}`;
}

// A constant of a formula, exactly: "12", "0.076", "8.8 × 10¹³".
function constant(value) {
  const digits = significantDigits(value);
  return Math.abs(value) < 1e6 ? plainNumber(value, digits) : powerOfTen(value, digits);
}
