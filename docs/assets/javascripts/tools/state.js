// A tool's state and the query of its address: typed keys, each validated where it enters.
//
// A schema is an object: key → kind, made by `whole`, `number`, `choice`, `flag` or `text`. Keys
// that several tools share have one meaning in all of them, so that addresses can be passed on.
// Nothing here touches the document.

import { InputError, closest, grouped } from "../engine/errors.js";
import { LONGEST_ADDRESS } from "./job_carried.js";
import { MOST_RANKS } from "../models/machine/layout.js";

const LONGEST = 80; // most characters of a plausible value
const SHOWN = 40; // most characters of an invalid value that a message repeats
const MOST_PROBLEMS = 20; // of an address that are listed; the others are counted

/** A whole number in `min` … `max`; `fallback` null means "derived" and is never written. */
export const whole = (fallback, min = 1, max = MOST_RANKS) => ({
  fallback,
  ends: [min, max],
  round: Math.round,
  expected: `a whole number from ${min} to ${grouped(max)}`,
  read(text) {
    const value = /^-?\d{1,15}$/.test(text) ? Number(text) : NaN;
    return value >= min && value <= max ? value : undefined;
  },
});

/** A decimal number, such as 1.5 or 2e9, in `min` … `max`. */
export const number = (fallback, min = 0, max = Number.MAX_VALUE) => ({
  fallback,
  ends: [min, max],
  round: Number,
  expected: `a number from ${min} to ${max}`,
  read(text) {
    const value = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?$/i.test(text) ? Number(text) : NaN;
    return value >= min && value <= max ? value : undefined;
  },
});

/** One of `choices`; a misspelt one is refused with similar ones. */
export const choice = (fallback, choices) => ({
  fallback,
  choices,
  expected: `one of ${choices.filter(Boolean).slice(0, 12).join(", ")}${choices.length > 12 ? ", …" : ""}`,
  read: (text) => (choices.includes(text) ? text : undefined),
});

/** On or off, written 1 or 0. */
export const flag = (fallback) => ({
  fallback,
  expected: "1 or 0",
  read: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  write: (value) => (value ? "1" : "0"),
});

/** Any text that `check` accepts; it throws an InputError for others. */
export const text = (fallback, check) => ({
  fallback,
  expected: null,
  read(given) {
    check(given);
    return given;
  },
});

/** The word of an address for a derived value, where a preset has a number. */
export const AUTO = "auto";
export const optional = (kind) => ({
  ...kind,
  expected: `${kind.expected} or ${AUTO}`,
  read: (given) => (given === AUTO ? null : kind.read(given)),
});

/** Every key of `schema` with its default. */
export const defaults = (schema) =>
  Object.fromEntries(Object.entries(schema).map(([key, kind]) => [key, kind.fallback]));

/** The value of one key, written as `given`. Throws InputError that names what was expected. */
export function readValue(schema, key, given) {
  const kind = schema[key];
  const got = given.length > SHOWN ? `${given.slice(0, SHOWN)}…` : given;
  const refuse = (expected, nearest = []) => new InputError(key, { expected, got, nearest });
  const longest = kind.longest ?? LONGEST;
  if (given.length > longest) throw refuse(`at most ${longest} characters`);
  const value = kind.read(given);
  if (value !== undefined) return value;
  const nearest = kind.choices ? closest(given, kind.choices) : [];
  throw refuse(nearest.length ? null : kind.expected, nearest);
}

/**
 * Calls `onValue(value)` with the value of `input`, immediately if it is plain digits, or
 * `onBad(expected, nearest)`. `batch` is given if a global batch may be typed in tokens.
 */
export async function readTyped(schema, key, input, { onValue, onBad, batch = null }) {
  const [kind, typed] = [schema[key], input.value.trim()];
  if (typed === "" && !kind.fallback && kind.fallback !== 0) return onValue(kind.fallback);
  try {
    return onValue(readValue(schema, key, typed));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    if (!kind.ends || typed === "") return onBad(error.expected ?? kind.expected, []);
  }
  const { typedNumber } = await import("./typed.js");
  if (input.value.trim() !== typed) return; // more was typed meanwhile
  const { value, expected, nearest } = typedNumber(key, kind, typed, batch);
  if (value === undefined) onBad(expected, nearest);
  else onValue(value);
}

/** `given`, the keys of `query` that are valid, and `problems`, one sentence per invalid one. */
export function parseQuery(schema, query) {
  const [given, problems] = [{}, []];
  for (const [key, written] of new URLSearchParams(query)) {
    if (!Object.hasOwn(schema, key)) continue;
    try {
      if (Object.hasOwn(given, key))
        throw new InputError(key, { expected: "one value", got: "several" });
      given[key] = readValue(schema, key, written);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(error.message);
    }
  }
  return { given, problems };
}

/** The value of a key that a tool parses itself, or null; duplicates are added to `problems`. */
export function onlyValue(query, key, problems) {
  const all = query.getAll(key);
  if (all.length > 1) problems.push(new InputError(key, { expected: "one value", got: "several" }).message);
  return all[0] ?? null;
}

/** A global batch in the forms and addresses of all tools. */
export const batch = () => ({ ...whole(1, 1, 10 ** 9), name: "global_batch" });

/**
 * The result of `read(query, job)` for an address, with at most MOST_PROBLEMS different `problems`. Every
 * tool reads its address through this function. `query` has the keys of `kinds`, with numbers in plain
 * digits; `job` is the rest, which the tool carries for others. `sequenceOf(query)` is the number of
 * tokens of a sequence, where a batch may be given in tokens. An address that is too long is not read.
 */
export async function readAddress(address, kinds, read, sequenceOf) {
  const isOdd = ([key, text]) => {
    const kind = Object.hasOwn(kinds, key) && kinds[key];
    return !kind || (kind.ends && kind.read(text) === undefined);
  };
  const all = new URLSearchParams();
  if (address.length > LONGEST_ADDRESS) {
    const expected = `at most ${grouped(LONGEST_ADDRESS)} characters`;
    return { ...read("", all), problems: [new InputError("its length", { expected, got: address.length }).message] };
  }
  const { query, job, problems: odd } = [...new URLSearchParams(address)].some(isOdd)
    ? await (await import("./address_read.js")).sorted(address, kinds, sequenceOf) : { query: address, job: all, problems: [] };
  const found = read(query, job);
  const problems = [...new Set([...odd, ...found.problems])];
  const more = problems.splice(MOST_PROBLEMS).length;
  if (more) problems.push(`${grouped(more)} more ${more === 1 ? "value" : "values"} cannot be read`);
  return { ...found, problems };
}

/** The query, without its question mark, of the differences between `state` and `base`. */
export function toQuery(schema, state, base = defaults(schema)) {
  const query = new URLSearchParams();
  for (const [key, kind] of Object.entries(schema)) {
    const value = state[key];
    if (value === null || value === undefined || value === base[key]) continue;
    query.set(key, kind.write ? kind.write(value) : String(value));
  }
  return query.toString();
}
