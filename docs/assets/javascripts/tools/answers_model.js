// The formulas of a question on a page, which figgen.scenarios.tools.graded uses. Pure.

import { arguments_of, varied } from "../equations/call_data.js";
import * as formulas from "../formulas.js";
import { verdict } from "../scenarios/tools/graded.js";
import { mapped } from "../engine/records.js";

// Formulas don't check their domain; outside of it they return NaN.
const compute = (name, given) => formulas[name](Object.fromEntries(given));

/** The arguments of a formula as numbers. */
export const argumentsOf = (call) => Object.fromEntries(arguments_of(call, compute));

/** The verdict on `text`: { right, words }. */
export const verdictOn = ({ unit, spec }, call, text) => verdict(text, unit, spec, call, compute);

/** The call of a form's question: `yours` as JSON if a cluster sets it, else its own; a case changes some arguments. */
export const callOf = ({ call, cases }, yours, at) => {
  const asked = mapped(yours ? JSON.parse(yours) : call);
  return at < 0 ? asked : varied(asked, mapped(cases[at][0]));
};
