// Converts plain objects to records of the printed models, and their results to plain objects.

import { record_of } from "./runtime.js";

/** A record of the fields in `given`; other fields have their defaults. */
export const record = (cls, given) => record_of(cls, new Map(Object.entries(given)));

/** Converts a Python dictionary, and dictionaries inside it, to objects. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, one]) => [name, plain(one)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

/** Converts JSON to Python's form: objects become dictionaries without undefined values. */
export function mapped(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(mapped);
  const found = new Map();
  for (const [name, one] of Object.entries(value)) if (one !== undefined) found.set(name, mapped(one));
  return found;
}
