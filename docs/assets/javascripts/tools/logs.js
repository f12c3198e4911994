// The content of a pasted log: a table of collectives, step lines of training, or PyTorch's out-of-memory
// message, with the command line's reader and words. Loaded when a text is pasted.

import { collective_rows, log_sentences } from "../scenarios/taking/log_words.js";
import { read_log } from "../scenarios/taking/logs.js";
import { el } from "./dom.js";

/** A row of a kind and a sentence as a message. */
export const told = ([kind, sentence]) => el("div", { class: `tool-message is-${kind}` }, el("p", {}, sentence));

/**
 * The content of a text that is a log: { log, shown }, with elements for the page; null for other texts.
 * `lineRate(log)` is the busbw at which the links under a table of collectives are full, or null.
 */
export function readLog(text, lineRate = () => null) {
  const log = read_log(text);
  if (!log) return null;
  const rate = log.rows ? lineRate(log) : null;
  return { log, shown: [...log_sentences(log, rate).map(told), ...(log.rows ? [sizes(collective_rows(log, rate))] : [])] };
}

const sizes = ([head, ...rows]) =>
  el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": "Sizes in the log" },
    el("table", { class: "tool-table" },
      el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col", class: "num" }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text) => el("td", { class: "num" }, text)))))));
