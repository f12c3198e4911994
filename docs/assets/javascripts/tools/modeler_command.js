// The command line for a configuration of the modeler. Pure.

import { OWN, optionsOf } from "./modeler_options.js";

/** Whether the command line has a name for everything in the state. */
export const hasOwnNumbers = ({ model, chip, nic }) => [model, chip, nic].includes(OWN);

/** The arguments of `figgen step` and `figgen memory` for this configuration. */
export function commandOf(verb, state, catalog) {
  const words = ["figgen", verb];
  for (const { key, flag, kind, unit, scale, required, asked_by, default: usual } of optionsOf(catalog)) {
    const value = state[key];
    if (!asked_by.includes(verb) || value === null || value === undefined) continue;
    if (kind === "switch") {
      if (value !== usual) words.push(flag);
    } else if (kind === "quantity") {
      if (value * scale !== usual) words.push(flag, `'${value} ${unit}'`);
    } else if (required || String(value) !== String(usual)) words.push(flag, /\s/.test(value) ? `'${value}'` : value);
  }
  return [...words, "--json"].join(" ");
}

/** The command that writes the trace of this configuration. */
export const traceCommand = (state, catalog) =>
  commandOf("step", state, catalog).replace("step", "trace-export trace.json").replace(" --json", "");
