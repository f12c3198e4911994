// What measure.py wrote on a reader's machine, as the line of rates that a state has. Loaded on demand.

import { measured_file } from "../catalog/measured_file.js";
import { rates_of } from "../scenarios/runs/machine_rates.js";
import { readJson } from "./json.js";

/** The rates of a file's text as a line. Throws InputError for a file that is none, or says nonsense. */
export const ratesOf = (text) => rates_of(measured_file(text, readJson)).text;

/** The change to a state that makes the machine of a file the one that is computed with; none of an empty text. */
export const measuredChanges = (text) => ({ measured: text.trim() ? ratesOf(text) : null });
