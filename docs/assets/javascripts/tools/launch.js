// The launch line of a layout for each framework, by the command line's writers; `taken.js` reads
// them back. Loaded when the map shows them.

import { record } from "../engine/records.js";
import { write_layout } from "../scenarios/writing/writers.js";
import { JobToWrite } from "../scenarios/writing/written.js";

/** { text, note } of a layout for a launcher; text is empty where it cannot be said. */
export function launchOf(launcher, parallel) {
  const { text, refused, note } = write_layout(launcher, record(JobToWrite, { parallel }));
  return { text, note: refused ? `${refused}.` : note };
}
