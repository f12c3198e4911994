// Values of a figure's parameters from what a reader types, and back. Pure.

import { InputError } from "../engine/errors.js";
import { shown } from "../quantity_shown.js";
import { read_quantity } from "../quantity_text.js";

const GROWTH = 8; // how many times the page's value a count may be, so that no browser stands still
const LEAST = 64;

const one = (unit, value) => (unit === "1" ? String(value) : shown(value, unit).replaceAll("\u00a0", " "));

/** A parameter's value as a field shows it; lists have commas, none is empty. */
export const shownParameter = ({ unit, value }) =>
  value === null ? "" : [value].flat().map((each) => one(unit, each)).join(", ");

/** What was typed for a parameter { name, kind, unit, value, optional }. Throws InputError. */
export function readParameter(parameter, text) {
  if (text.trim() === shownParameter(parameter)) return parameter.value; // digits that are not shown stay
  if (!text.trim() && parameter.optional) return null;
  if (!parameter.list) return number(parameter, text);
  return text.split(",").map((each) => number(parameter, each));
}

function number({ name, kind, unit, value }, text) {
  if (kind === "str") return text.trim();
  const found = read_quantity(text.trim());
  if (found.unit !== unit) throw new InputError(name, { expected: unit === "1" ? "a number" : `a quantity in ${unit}`, got: text });
  if (kind === "float") return found.value;
  const most = GROWTH * Math.max(LEAST / GROWTH, ...[value ?? 0].flat());
  if (!Number.isInteger(found.value) || found.value > most) throw new InputError(name, { expected: `a whole number up to ${most}`, got: text });
  return found.value;
}
