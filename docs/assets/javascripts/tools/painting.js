// What only painted tools need: to know when the colours of the page change, and to work after a frame.

import { perFrame } from "./dom.js";

/** The same when the next frame is on the screen: for what is not looked at first. */
export const afterFrame = (work) => perFrame((...given) => setTimeout(work, 0, ...given));

/** Calls `repaint` when light becomes dark, or the page goes to a printer, until `signal`. */
export function onPalette(repaint, signal) {
  const watcher = new MutationObserver(repaint);
  watcher.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  signal.addEventListener("abort", () => watcher.disconnect());
}
