// Events of a trace one by one, from text that arrives in pieces; mirrors figgen.models.profiles.trace_reader.

import { InputError, grouped } from "./errors.js";

export const LARGEST_VALUE = 2 ** 26; // characters of one event or header
const DEEPEST = 200; // lists and objects in each other
const TOO_DEEP = Infinity;
const BLANK = new Set([" ", "\t", "\r", "\n"]);
const NEITHER = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/**
 * Reads a trace called `name`: `push(text)` for each piece, `end()` after the last, `header`, `done` once there
 * is nothing more to read. `take(header, event)` is called for each event, with what stood before.
 * Throws InputError for text that is no trace.
 */
export function traceReader(name, take) {
  let [text, at, before, ended] = ["", 0, 0, false];
  const header = {};
  const run = events();
  const reader = {
    done: false,
    header,
    push(piece) {
      before += at;
      text = text.slice(at) + piece;
      at = 0;
      if (text.length > LARGEST_VALUE) throw wrong(`a value of at most ${grouped(LARGEST_VALUE)} characters`);
      reader.done = run.next().done;
    },
    end() {
      ended = true;
      while (!reader.done) reader.done = run.next().done;
    },
  };
  return reader;

  function wrong(expected) {
    const got = text.slice(at, at + 40) || "the end of the file";
    return new InputError(`trace ${name}, character ${grouped(before + at)}`, { expected, got });
  }

  // The next character that is no white space, not taken; empty at the end.
  function* next() {
    for (;;) {
      while (at < text.length && BLANK.has(text[at])) at++;
      if (at < text.length) return text[at];
      if (ended) return "";
      yield;
    }
  }

  function* one(wanted) {
    const found = at < text.length && !BLANK.has(text[at]) ? text[at] : yield* next();
    if (!found || !wanted.includes(found)) throw wrong(`one of ${[...wanted].join(" ")}`);
    at++;
  }

  function whole() {
    const end = endOf(text, at);
    if (end === TOO_DEEP) throw wrong(`at most ${DEEPEST} lists and objects in each other`);
    return end;
  }

  function* value() {
    yield* next();
    let end = whole();
    while (end < 0 && !ended) {
      yield;
      end = whole();
    }
    const written = text.slice(at, end < 0 ? text.length : end);
    let found;
    try {
      found = parsed(written);
    } catch {
      throw wrong("a whole JSON value");
    }
    at += written.length;
    return found;
  }

  function* list() {
    yield* one("[");
    while ((yield* next()) !== "]") {
      const event = yield* value();
      if (event === null || typeof event !== "object" || Array.isArray(event)) throw wrong("events that are objects");
      take(header, event);
      if ((yield* next()) !== "]") yield* one(",");
    }
    yield* one("]");
  }

  function* events() {
    if ((yield* next()) === "[") return yield* list();
    yield* one("{");
    let found = false;
    while ((yield* next()) !== "}") {
      const key = yield* value();
      yield* one(":");
      if (key === "traceEvents") {
        found = true;
        yield* list();
      } else Object.defineProperty(header, String(key), { value: yield* value(), enumerable: true, configurable: true, writable: true });
      if ((yield* next()) !== "}") yield* one(",");
    }
    if (!found) throw new InputError(`trace ${name}`, { expected: "a list traceEvents", got: Object.keys(header).slice(0, 8) });
  }
}

// Python writes, and reads, numbers that JSON has not.
function parsed(written) {
  try {
    return JSON.parse(written);
  } catch {
    return JSON.parse(written.replace(NEITHER, (found) => (found[0] === '"' ? found : "null")));
  }
}

/** Where the JSON value that begins at `at` ends; -1 where the text ends before, TOO_DEEP where none may. */
export function endOf(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) {
      i = quoteAfter(text, i);
      if (i < 0) return -1;
      if (!depth) return i + 1;
    } else if (code === 123 || code === 91) {
      if (++depth > DEEPEST) return TOO_DEEP;
    }
    else if (code === 125 || code === 93) {
      if (!depth) return i;
      if (--depth === 0) return i + 1;
    } else if (!depth && (code === 44 || code === 58 || code === 32 || (code >= 9 && code <= 13))) return i;
  }
  return -1;
}

// Where the text in quotation marks that begins at `at` ends; -1 where it does not.
function quoteAfter(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}
