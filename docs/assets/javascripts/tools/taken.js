// Reads scripts, configurations, config.json files and lines of tools with the command line's reader.

import { grouped, InputError } from "../engine/errors.js";
import { parameter_counts } from "../models/shape/transformer.js";
import { is_model_file } from "../scenarios/architectures/file_text.js";
import { read_job } from "../scenarios/taking/job.js";
import { completed_job } from "../scenarios/taking/left_open.js";
import { OwnNames } from "../scenarios/taking/own_lines.js";
import { tables } from "../taking-tables.js";
import { button, el, field } from "./dom.js";

const LONGEST = 65_536; // characters; launch scripts have a few thousand
const mapOf = (object) => new Map(Object.entries(object));
const named = (object) => new Map(Object.keys(object).map((name) => [name, object[name] || name.replaceAll("-", "_")]));
const { flags, switches, on, keys, units, usual, chunks, sequence, matters_with: beside, domains } = tables.names;
const NAMES = new OwnNames(named(flags), mapOf(switches), on, named(keys), mapOf(units), mapOf(usual), mapOf(chunks), sequence, mapOf(beside), mapOf(domains));
const [[, ...columns], ...rows] = tables.sizes;
const MODELS = new Map(
  rows.map(([name, ...sizes]) => [name, new Map(columns.map((column, at) => [column, sizes[at]]))]),
);

export { is_model_file };

/**
 * What `figgen take` prints of a text; `answers` are values of its open variables, and `modelFile` of
 * model_file.js reads a model's own file. Throws InputError.
 */
export function takeText(text, answers, modelFile) {
  if (text.length > LONGEST) {
    throw new InputError("the text", { expected: `at most ${grouped(LONGEST)} characters`, got: text.length });
  }
  if (is_model_file(text)) return modelFile(text);
  const job = completed_job(read_job(text, mapOf(answers), NAMES), NAMES, MODELS);
  const [taken, assumed, because] = [job.taken, job.assumed, job.because].map((map) => Object.fromEntries(map));
  return { ...job, taken, assumed, because };
}

/** The values of a job, without the step's defaults for options that the page sets. */
export function knownOf({ taken, assumed, usual }) {
  return Object.fromEntries(Object.entries({ ...assumed, ...taken }).filter(([name]) => !usual.includes(name)));
}

const shown = (value) => (value === true ? "on" : value === false ? "off" : value);
const pairs = (values) => Object.entries(values).map(([name, value]) => `${name} ${shown(value)}`).join(", ");

// Assumptions by their reason, each reason once.
const assumptions = (assumed, because) =>
  [...new Set(Object.values(because))]
    .map((reason) => [reason, pairs(Object.fromEntries(Object.entries(assumed).filter(([name]) => because[name] === reason)))])
    .flatMap(([reason, said]) => (said ? [`${said} (${reason})`] : []))
    .join("; ");

/** What was read, as rows of a kind and a sentence: taken, assumed, not understood, ignored. */
export function takenRows({ dialect, taken, assumed, because, left, unsure, notes, shape }) {
  const others = left.filter((name) => !unsure.includes(name));
  const said = shape ? `a model of ${grouped(parameter_counts(shape).total)} parameters` : pairs(taken);
  return [
    ["plain", `Read as ${dialect}. Taken: ${said || "nothing"}.`],
    ...(Object.keys(assumed).length ? [["plain", `Assumed: ${assumptions(assumed, because)}.`]] : []),
    ...notes.map((note) => ["warning", `${note[0].toUpperCase()}${note.slice(1)}${/[.?]$/.test(note) ? "" : "."}`]),
    ...(unsure.length ? [["warning", `Not understood, but may matter: ${unsure.join(", ")}.`]] : []),
    ...(others.length ? [["plain", `Left aside: ${others.join(", ")}.`]] : []),
  ];
}

/** A row of a kind and a sentence as a message. */
export const told = ([kind, sentence]) => el("div", { class: `tool-message is-${kind}` }, el("p", {}, sentence));

/** A form for the first variable that a text does not set; `again` reads the text with its value. */
export function askFor([name, ...others], again) {
  if (name === undefined) return [];
  const value = el("input", { type: "text", name: "variable", autocomplete: "off", spellcheck: "false" });
  const rest = others.length ? `then ${others.map((one) => `$${one}`).join(", ")}` : null;
  const go = (event) => {
    event.preventDefault();
    if (value.value.trim()) again({ [name]: value.value.trim() });
    else value.focus();
  };
  const form = el("form", { class: "tool-ask", on: { submit: go } }, field(`The text doesn't set $${name}. Its value`, value, rest), button("Go on", go));
  setTimeout(() => value.focus());
  return [form];
}
