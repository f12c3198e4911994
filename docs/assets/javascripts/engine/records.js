// Records of the printed models from plain objects, and plain objects from what they answer.

import { record_of } from "./runtime.js";

/** A record of the fields in `given`; what is left out has its default. */
export const record = (cls, given) => record_of(cls, new Map(Object.entries(given)));

/** A dictionary of Python's, and those in it, as an object. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, one]) => [name, plain(one)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

/** A value of JSON as Python has it: objects are dictionaries, in which nothing is undefined. */
export function mapped(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(mapped);
  const found = new Map();
  for (const [name, one] of Object.entries(value)) if (one !== undefined) found.set(name, mapped(one));
  return found;
}
