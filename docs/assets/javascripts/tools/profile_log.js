// Reads a log on the profile reader's page. Loaded when a reader brings one.

import { el } from "./dom.js";
import { readLog } from "./logs.js";

/** The content of a log as elements; null for other texts. */
export function logParts(text) {
  const read = readLog(text);
  if (!read) return null;
  const modeler = el("a", { href: "../modeler/" }, "modeler");
  const next = read.log.asked_bytes
    ? el("p", {}, "What filled the memory: set your job in the ", modeler, " and paste the message there to see it next to the predicted memory, or ",
      el("a", { href: "../../guide/out-of-memory/" }, "record a snapshot"), " and open it here.")
    : el("p", {}, "Paste it in the ", modeler, " to compare it with the prediction for your job.");
  return [...read.shown, next];
}
