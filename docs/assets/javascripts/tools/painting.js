// What only tools with a canvas need: notice of changes of the page's colors, and work after a frame.

import { perFrame } from "./dom.js";

/** The same after the next frame is on the screen, for parts that are not looked at first. */
export const afterFrame = (work) => perFrame((...given) => setTimeout(work, 0, ...given));

/** Calls `repaint` when light changes to dark, or the page is printed, until `signal`. */
export function onPalette(repaint, signal) {
  const watcher = new MutationObserver(repaint);
  watcher.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  signal.addEventListener("abort", () => watcher.disconnect());
}
