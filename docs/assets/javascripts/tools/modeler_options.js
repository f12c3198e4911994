// The options of a training job, one table for the address, the form, the words, the engine and the
// command line, from the page's data of figgen.scenarios.options.schema. Pure.

import { unknown } from "../engine/errors.js";
import { convention } from "../models/machine/frameworks.js";
import { recomputation } from "../models/shape/recomputation.js";
import { read_line } from "../scenarios/runs/measured_rates.js";
import { choice, flag, number, onlyValue, optional, text, whole } from "./state.js";

/** The value of a choice that means the reader's own numbers. */
export const OWN = "own";
const WITH_OWN = ["model", "accelerator", "nic"];

/** Options that follow from others here and are shown but not stored. */
const DERIVED = ["dp", "global_batch"];

const STARTS = { model: "llama-3-70b", nodes: 1, gpus_per_node: 8 };
// The engine, which has the catalog, checks the name of the software.
const CHECKS = { order: convention, recompute: recomputation, software: Boolean, measured: read_line };
const LONGEST = { measured: 600 };

/** All options; if the choices are a part of the catalog, they have its names and titles. */
export function allOptions(catalog) {
  if (!known.has(catalog)) {
    const filled = (option) => {
      const part = typeof option.choices === "string" && catalog[option.choices];
      return part ? { ...option, choices: Object.entries(part).map(([name, { title }]) => [name, title]) } : option;
    };
    known.set(catalog, catalog.options.map(filled));
  }
  return known.get(catalog);
}
// A catalog → its options.
const known = new WeakMap();

/** The options that the modeler's state contains. */
export const optionsOf = (catalog) => allOptions(catalog).filter(({ name }) => !DERIVED.includes(name));

/** Renames options of older addresses in `query`; returns messages about values that it cannot convert. */
export function takeIn(catalog, query) {
  const problems = [];
  for (const { key, former } of optionsOf(catalog)) {
    for (const name in former) {
      if (!query.has(name)) continue;
      const [known, given] = [former[name], onlyValue(query, name, problems)];
      query.delete(name);
      if (!Object.hasOwn(known, given)) problems.push(unknown(name, given.slice(0, 40), Object.keys(known)).message);
      else query.append(key, known[given]);
    }
  }
  return problems;
}

/** Tokens of a sequence of the job in a query. */
export const sequenceIn = (catalog) => (query) =>
  Number(query.get("sequence")) || catalog.models[query.get("model") ?? STARTS.model]?.sequence || 8192;

const plainCount = (part) => (/k$/i.test(part) ? 1024 * Number(part.slice(0, -1)) : Number(part));
const counts = {
  fallback: null,
  expected: "counts such as 8,9,9,6",
  read: (given) => (/^\d{1,8}k?(,\d{1,8}k?)*$/i.test(given) ? given.split(",").map(plainCount).join() : undefined),
};

/** How an option's value is parsed from an address or a field. */
export function kindOf({ name, kind, default: usual, low, high, unit, scale, choices, required }) {
  const start = usual ?? STARTS[name] ?? null;
  if (kind === "switch") return flag(start);
  if (kind === "text") return { ...text(start, CHECKS[name]), longest: LONGEST[name] };
  if (kind === "counts") return optional(counts);
  if (choices) return choice(String(start), [...choices.map(([one]) => one), ...(WITH_OWN.includes(name) ? [OWN] : [])]);
  const si = scale ?? 1;
  const sizes = kind === "whole" ? whole(start, low, high) : number(start === null ? null : start / si, low / si, high / si);
  const read = { ...sizes, name, unit };
  return start === null && !required ? optional(read) : read;
}

/** An option's value of a state in the engine's form, and the reverse. */
export function engineValue({ kind, scale, choices }, value) {
  if (value === null || value === undefined) return null;
  if (kind === "counts") return value.split(",").map(Number);
  if (kind === "whole" && choices) return Number(value);
  return kind === "quantity" ? value * scale : value;
}

export function stateValue({ kind, scale, choices }, value) {
  if (value === null) return null;
  if (kind === "counts") return value.length ? value.join(",") : null;
  if (kind === "whole" && choices) return String(value);
  return kind === "quantity" ? value / scale : value;
}

// Key → { label, choices: Map }.
let words = new Map();
/** Takes over the table's words for `labelOf` and `wordOf`. */
export function learn(catalog) {
  words = new Map(
    allOptions(catalog).map(({ key, label, choices }) => [key, { label: inSentence(label), choices: new Map(choices ?? []) }]),
  );
  for (const { name, key } of catalog.options) words.set(name, words.get(key));
}

// "TP, tensor" is TP in a sentence, "Rank order" rank order, "FlashAttention: …" FlashAttention.
function inSentence(label) {
  const [short] = label.split(/[,:]/);
  return /^[A-Z][a-z]+(\s|$)/.test(short) ? short[0].toLowerCase() + short.slice(1) : short;
}

/** An option's name in sentences, by its key or its name; undefined if there is no such option. */
export const labelOf = (key) => words.get(key)?.label;

/** The name of a choice's value in sentences; undefined if it has none. */
export const wordOf = (key, value) => words.get(key)?.choices.get(value)?.split(":")[0];
