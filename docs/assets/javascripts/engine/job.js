// The printed models, asked with a page's catalog and options, which are plain objects.

import { mapped } from "./records.js";
import { page_job } from "../scenarios/tools/page_job.js";
import { served } from "../scenarios/tools/served.js";

const read = new WeakMap();
/** A page's catalog as the models take it. */
export function servedBy(catalog) {
  if (!read.has(catalog)) read.set(catalog, served(mapped(catalog)));
  return read.get(catalog);
}

/** The job of `choices`; see page_job. Throws InputError. */
export const jobOf = (catalog, choices, base = null) => page_job(servedBy(catalog), mapped(choices), base);
