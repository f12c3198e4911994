// Calls the printed models with a page's catalog and options, which are plain objects.

import { mapped } from "./records.js";
import { page_job } from "../scenarios/tools/page_job.js";
import { served } from "../scenarios/tools/served.js";

const isPlain = (one) => one !== null && typeof one === "object" && !(one instanceof Map);

// A job needs little of a catalog, so its dictionaries are made on first use.
class Entries extends Map {
  constructor(given) { super(Object.entries(given)); }
  get(name) {
    const one = super.get(name), isList = Array.isArray(one);
    if (!isPlain(isList ? one[0] : one)) return one;
    this.set(name, isList ? one.map((each) => new Entries(each)) : new Entries(one));
    return super.get(name);
  }
  entries() { return Array.from(this.keys(), (name) => [name, this.get(name)]).values(); }
  [Symbol.iterator]() { return this.entries(); }
}

const read = new WeakMap();
/** A page's catalog in the form that the models expect. */
export function servedBy(catalog) {
  if (!read.has(catalog)) read.set(catalog, served(new Entries(catalog)));
  return read.get(catalog);
}

/** The job of `choices`; see page_job. Throws InputError. */
export const jobOf = (catalog, choices, base = null) => page_job(servedBy(catalog), mapped(choices), base);
