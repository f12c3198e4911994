// Reads scripts, configurations and lines of tools with the reader that the command line has.

import { grouped, InputError } from "../engine/errors.js";
import { MOST_RANKS } from "../models/machine/layout.js";
import { read_job } from "../scenarios/taking/job.js";
import { OwnNames } from "../scenarios/taking/own_lines.js";
import { tables } from "../config-tables.js";

const LONGEST = 65_536; // characters; a launch script has some thousand
const mapOf = (object) => new Map(Object.entries(object));
const { flags, switches, on, keys, units } = tables.names;
const NAMES = new OwnNames(mapOf(flags), mapOf(switches), on, mapOf(keys), mapOf(units));

/** What `figgen take` prints of a text; `answers` are values of its open variables. Throws InputError. */
export function takeText(text, answers = {}) {
  if (text.length > LONGEST) {
    throw new InputError("the text", { expected: `at most ${grouped(LONGEST)} characters`, got: text.length });
  }
  const { dialect, taken, assumed, left, unsure, asked, notes } = read_job(text, mapOf(answers), NAMES);
  return { dialect, taken: Object.fromEntries(taken), assumed: Object.fromEntries(assumed), left, unsure, asked, notes };
}

const SIZES = { nodes: "nodes", gpus_per_node: "gpus", tp: "tp", cp: "cp", ep: "ep", etp: "etp", pp: "pp", order: "order" };
const USUAL = { tp: 1, cp: 1, ep: 1, etp: null, pp: 1, dp: null, order: "megatron" };

/**
 * What a text says of a layout: `changes` to a state of the rank map, null where it says nothing of
 * one; `found`, all that was read; `problems` in words. A cluster that the text leaves out is kept.
 */
export function takeLayout(text) {
  let found;
  try {
    found = takeText(text);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { changes: null, found: null, problems: [error.message] };
  }
  const known = { ...found.assumed, ...found.taken };
  const changes = { ...USUAL };
  for (const [name, key] of Object.entries(SIZES)) if (name in known) changes[key] = known[name];
  const problems = Object.values(SIZES)
    .filter((key) => Number.isInteger(changes[key]) && (changes[key] < 1 || changes[key] > MOST_RANKS))
    .map((key) => `${key}: expected a whole number from 1 to ${grouped(MOST_RANKS)}, got ${changes[key]}`);
  const says = Object.keys(SIZES).some((name) => name !== "order" && name in found.taken);
  const turned = found.taken.order === "megatron-tp-pp-dp";
  if (!says && !turned && !found.asked.length) problems.push("no option about the layout was found, such as --tensor-model-parallel-size 8");
  return { changes: problems.length ? null : changes, found, problems };
}

const shown = (value) => (value === true ? "on" : value === false ? "off" : value);
const pairs = (values) => Object.entries(values).map(([name, value]) => `${name} ${shown(value)}`).join(", ");

/** What was read, as rows of a kind and a sentence: taken, assumed, asked for, not understood, left. */
export function takenRows({ dialect, taken, assumed, left, unsure, asked, notes }) {
  const others = left.filter((name) => !unsure.includes(name));
  return [
    ["plain", `Read as ${dialect}. Taken: ${pairs(taken) || "nothing"}.`],
    ...(Object.keys(assumed).length ? [["plain", `Assumed, since the text does not say: ${pairs(assumed)}.`]] : []),
    ...notes.map((note) => ["warning", `${note}${/[.?]$/.test(note) ? "" : "."}`]),
    ...(asked.length ? [["warning", `The text does not set ${asked.map((name) => `$${name}`).join(", ")}: write ${asked[0]}=… above it.`]] : []),
    ...(unsure.length ? [["warning", `Not understood, though it may matter: ${unsure.join(", ")}.`]] : []),
    ...(others.length ? [["plain", `Left aside: ${others.join(", ")}.`]] : []),
  ];
}
