// Events of a trace as the text of a file that Perfetto opens.

import { plain } from "../engine/records.js";
import { MADE_BY } from "../models/profiles/trace_kinds.js";

/** The text of a trace of `model`, an event a line. */
export function traceLines(events, model) {
  const lines = Array.from(events, (event) => JSON.stringify(plain(event)));
  const other = JSON.stringify({ "made by": MADE_BY, model });
  return `{"displayTimeUnit": "ms", "otherData": ${other}, "traceEvents": [\n${lines.join(",\n")}\n]}\n`;
}
