// Splits a trace's text into JSON values; figgen.models.profiles.trace_text reads the text between them.

import { DEEPEST, LARGEST_VALUE, NOT_WHOLE, TOO_DEEP, TraceText } from "../models/profiles/trace_text.js";

const BEYOND = Infinity;
const NEITHER = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/** The window on the text of a trace called `name`; `mapped` makes dictionaries of objects. */
export const traceText = (name, mapped) => new TraceText(name, (window) => {
  const { text, at, ended } = window;
  const end = endOf(text, at);
  if (end === BEYOND) throw window.wrong(TOO_DEEP);
  if (end < 0 && !ended) return null;
  const written = text.slice(at, end < 0 ? text.length : end);
  let found;
  try {
    found = parsed(written);
  } catch {
    throw window.wrong(NOT_WHOLE);
  }
  window.at += written.length;
  return [mapped(found)];
}, LARGEST_VALUE);

// Python writes and reads numbers that JSON doesn't have.
function parsed(written) {
  try {
    return JSON.parse(written);
  } catch {
    return JSON.parse(written.replace(NEITHER, (found) => (found[0] === '"' ? found : "null")));
  }
}

/** The end of the JSON value that begins at `at`; -1 if the text ends before it, BEYOND if it is invalid. */
export function endOf(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) {
      i = quoteAfter(text, i);
      if (i < 0) return -1;
      if (!depth) return i + 1;
    } else if (code === 123 || code === 91) {
      if (++depth > DEEPEST) return BEYOND;
    }
    else if (code === 125 || code === 93) {
      if (!depth) return i;
      if (--depth === 0) return i + 1;
    } else if (!depth && (code === 44 || code === 58 || code === 32 || (code >= 9 && code <= 13))) return i;
  }
  return -1;
}

// The end of the quoted text that begins at `at`; -1 if the text ends before it.
function quoteAfter(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}
