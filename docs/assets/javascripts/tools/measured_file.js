// Reads a file that measure.py wrote on a reader's machine, as a state's line of rates. Loaded on demand.

import { measured_file } from "../catalog/measured_file.js";
import { rates_of } from "../scenarios/runs/machine_rates.js";
import { readJson } from "./json.js";

/** The rates in a file's text as a line. Throws InputError if the file is invalid or implausible. */
export const ratesOf = (text) => rates_of(measured_file(text, readJson)).text;

/** The change to a state that uses the rates of a file; an empty text removes them. */
export const measuredChanges = (text) => ({ measured: text.trim() ? ratesOf(text) : null });
