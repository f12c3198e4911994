// The models of this site as one module for other pages and programs; figgen.d.ts has its types.

import { catalog } from "../catalog.js";
import { InputError } from "../engine/errors.js";
import { jobOf } from "../engine/job.js";
import { plain } from "../engine/records.js";
import * as formulas from "../formulas.js";
import { page_answers } from "../scenarios/tools/page_answers.js";

const usual = Object.fromEntries(catalog.options.map((option) => [option.name, option.default]));

function known(what, name, all) {
  if (!Object.hasOwn(all, name)) throw new InputError(`unknown ${what} '${name}'`, { expected: `one of ${Object.keys(all).join(", ")}` });
  return all[name];
}

/** The step and the memory of a job. */
export function estimate({ preset, ...job }) {
  for (const name of Object.keys(job)) known("option", name, usual);
  const base = preset === undefined ? {} : known("preset", preset, catalog.presets).choices;
  const choices = { ...usual, ...base, ...job };
  if (!choices.model) throw new InputError("a job's model is missing");
  return plain(page_answers(jobOf(catalog, choices)));
}

const functions = Object.fromEntries(Object.entries(formulas).filter(([, one]) => typeof one === "function"));

/** The value of a formula in SI. */
export function formula(name, given) {
  return known("formula", name, functions)(given);
}

/** The names that a job may give. */
export const names = {
  models: Object.keys(catalog.models),
  accelerators: Object.keys(catalog.accelerators),
  links: Object.keys(catalog.links),
  presets: Object.keys(catalog.presets),
  formulas: Object.keys(functions),
};
