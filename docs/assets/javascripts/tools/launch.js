// The launch line of a layout for each framework, by the command line's writers; `taken.js` reads
// them back.

import { write_layout } from "../scenarios/writing/layouts.js";

/** { text, note } of a layout for a launcher; text is empty where it cannot be said. */
export function launchOf(launcher, parallel) {
  const { text, refused, note } = write_layout(launcher, parallel);
  return { text, note: refused ? `${refused}.` : note };
}
