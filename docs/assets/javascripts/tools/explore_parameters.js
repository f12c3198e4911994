// Values of a figure's parameters from what a reader types, and the reverse. Pure.

import { InputError, closest } from "../engine/errors.js";
import { shown } from "../quantity_shown.js";
import { read_quantity } from "../quantity_text.js";

const GROWTH = 8; // limit on a count as a multiple of the page's value, so that no browser freezes
const LEAST = 64;

const one = (unit, value) => (unit === "1" ? String(value) : shown(value, unit).replaceAll("\u00a0", " "));

/** A parameter's value as shown in a field; lists have commas, and an empty one is "none". */
export const shownParameter = ({ unit, value }) =>
  value === null ? "" : [value].flat().map((each) => one(unit, each)).join(", ");

/** What was typed for a parameter { name, kind, unit, value, optional }. Throws InputError. */
export function readParameter(parameter, text) {
  if (text.trim() === shownParameter(parameter)) return parameter.value; // keeps digits that are not shown
  if (!text.trim() && parameter.optional) return null;
  if (!parameter.list) return number(parameter, text);
  const found = text.split(",").map((each) => number(parameter, each));
  const { name, count = found.length } = parameter;
  if (found.length !== count) throw new InputError(name, { expected: `${count} values`, got: found });
  return found;
}

function quantity(text) {
  try { return read_quantity(text.trim()); } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

function number({ name, kind, unit, value }, text) {
  if (kind === "str") return text.trim();
  const found = quantity(text);
  if (found?.unit !== unit) throw new InputError(name, { expected: unit === "1" ? "a number" : `a quantity in ${unit}`, got: text.trim() });
  if (kind === "float") return found.value;
  const most = GROWTH * Math.max(LEAST / GROWTH, ...[value ?? 0].flat());
  if (!Number.isInteger(found.value) || found.value > most) throw new InputError(name, { expected: `a whole number up to ${most}`, got: text });
  return found.value;
}

/**
 * The possible values of a parameter as [value, words], current values first; null if a reader types it.
 * Names of the catalog have their titles.
 */
export function choicesOf({ name, kind, value, choices, optional }, lookups) {
  if (kind === "bool") return [[true, "yes"], [false, "no"]];
  const lookup = lookups[name];
  if (!lookup && !choices) return null;
  const all = choices ?? lookup.names().map((one) => [one, lookup(one).title]);
  const present = [value].flat();
  const found = [...present.flatMap((one) => all.filter(([each]) => each === one)), ...all.filter(([one]) => !present.includes(one))];
  return optional ? [[null, "–"], ...found] : found;
}

/** Returns the value of a parameter with choices, given the indices of the selected ones. Throws InputError. */
export function readChoice({ name, list }, choices, places) {
  const chosen = places.map((place) => choices[place][0]);
  if (!chosen.length) throw new InputError(name, { expected: "at least one" });
  return list ? chosen : chosen[0];
}

const LONG = 12; // more choices than this are searched

export const isLong = (choices) => choices.length > LONG;

const letters = (text) => String(text).toLowerCase().replace(/[^a-z0-9]/g, "");
const onlyOne = (found) => (found.length === 1 ? found[0] : null);

/** The titles of a parameter's current values, as shown in a field. */
export const shownChoices = ({ value }, choices) =>
  [value].flat().map((one) => choices.find(([each]) => each === one)?.[1] ?? "").join("; ");

/** The value of a parameter from titles or names that a reader types; a list has semicolons, since titles have commas. Throws InputError. */
export function readSearched({ name, list, optional }, choices, text) {
  const typed = (list ? text.split(";") : [text]).map((one) => one.trim()).filter(Boolean);
  if (!typed.length && optional) return null;
  const found = typed.map((one) => {
    const like = letters(one);
    const choice = choices.find(([value, words]) => [words, value].some((name) => letters(name) === like))
      ?? onlyOne(choices.filter(([, words]) => like && letters(words).includes(like)));
    if (!choice) throw new InputError(name, { expected: "a title from the list", got: one, nearest: closest(one, choices.map(([, words]) => words)) });
    return choice[0];
  });
  if (!found.length) throw new InputError(name, { expected: list ? "at least one" : "a title from the list" });
  return list ? found : found[0];
}
