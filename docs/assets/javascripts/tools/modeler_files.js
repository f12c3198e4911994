// Files to take away from the modeler: what the command line prints, and tables as comma-separated
// values. Pure; loaded on demand.

import { PARTS } from "./modeler_model.js";

// The numbers of the communication table, under the names of the command line's JSON.
const COLUMNS = [
  "axis",
  "purpose",
  "collective",
  "when",
  "size",
  "calls",
  "buffer_bytes",
  "call_bytes",
  "level",
  "time_s",
  "exposed_s",
  "rule",
  "sent_bytes",
];

export const json = (value) => `${JSON.stringify(value, null, 1)}\n`;

/** A step as `figgen step --json` prints it. */
export const stepJson = (found) => json(found.step);

/** The communication of a step as comma-separated values. */
export function communicationCsv(found) {
  const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const lines = [COLUMNS, ...found.step.communication.map((row) => COLUMNS.map((name) => row[name]))];
  return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

const SUMS = ["allocated_bytes", "reserved_bytes", "outside_bytes", "total_bytes"];
/** Memory of every pipeline rank as comma-separated values. */
export function memoryCsv({ memory }) {
  const names = PARTS.map(([name]) => name);
  const lines = [["pipeline_rank", "layers", "parameters", "in_flight", ...names, ...SUMS]];
  for (const rank of memory.ranks) {
    lines.push([
      rank.pipeline_rank,
      rank.layers,
      rank.parameters,
      rank.in_flight,
      ...names.map((name) => rank.bytes[name]),
      ...SUMS.map((name) => rank[name]),
    ]);
  }
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}
