// The formulas of a question of a page, which figgen.scenarios.tools.graded asks. Pure.

import { arguments_of } from "../equations/call_data.js";
import * as formulas from "../formulas.js";
import { verdict } from "../scenarios/tools/graded.js";

// Formulas don't check their domain; outside of it their own value is no number.
const compute = (name, given) => formulas[name](Object.fromEntries(given));

/** The arguments of a formula as numbers. */
export const argumentsOf = (call) => Object.fromEntries(arguments_of(call, compute));

/** The verdict on `text`: { right, words }. */
export const verdictOn = ({ unit, spec }, call, text) => verdict(text, unit, spec, call, compute);
