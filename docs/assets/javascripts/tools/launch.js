// The launch line of a layout for each framework, by the command line's writers; `taken.js` reads
// them back.

import { host_names, write_hosts } from "../scenarios/taking/hosts.js";
import { write_layout } from "../scenarios/writing/layouts.js";

/** { text, note } of a layout for a launcher, on `hosts` if given; text is empty if it can't express it. */
export function launchOf(launcher, parallel, hosts = null) {
  if (launcher.endsWith("file")) {
    const [text, note] = write_hosts(launcher, parallel, host_names(parallel, hosts));
    return { text, note };
  }
  const { text, refused, note } = write_layout(launcher, parallel);
  return { text, note: refused ? `${refused}.` : note };
}
