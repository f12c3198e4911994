// Parses a reader's JSON; mirrors figgen.json_text, so that both accept the same files.

import { ValueFault } from "../engine/errors.js";
import { mapped } from "../engine/records.js";

const DEEPEST = 200; // nested lists and objects
const SIGNS = /"(?:[^"\\]|\\[^])*"|[{}[\]:,]/g;

/** Parses `text`, as `mapped`; throws ValueFault if it is invalid, too deep, or has a duplicate key. */
export function readJson(text) {
  const open = []; // for each open object its keys so far, for each open list null
  let last = "";
  try {
    for (const [sign] of text.matchAll(SIGNS)) {
      if (sign === "{" || sign === "[") {
        open.push(sign === "{" ? new Set() : null);
        if (open.length > DEEPEST) throw new ValueFault("too deep");
      } else if (sign === "}" || sign === "]") open.pop();
      else if (sign === ":" && last[0] === '"') {
        const [keys, key] = [open.at(-1), JSON.parse(last)];
        if (keys?.has(key)) throw new ValueFault("a key is given twice");
        keys?.add(key);
      }
      last = sign;
    }
    return mapped(JSON.parse(text));
  } catch (error) {
    throw error instanceof SyntaxError ? new ValueFault(error.message) : error;
  }
}
