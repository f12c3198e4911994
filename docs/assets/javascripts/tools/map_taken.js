// Reads the layout in a script or a configuration, for the rank map. Loaded when there is one.

import { catalog } from "../catalog.js";
import { grouped, InputError } from "../engine/errors.js";
import { hosts_words } from "../models/machine/host_words.js";
import { MOST_RANKS } from "../models/machine/layout.js";
import { plural } from "./map_groups.js";
import { differences, read_hosts } from "../scenarios/taking/hosts.js";
import { modelFile } from "./model_file.js";
import { askFor, knownOf, takeText, takenRows as rowsOf, told } from "./taken.js";

export { askFor, told };

/** What was read, as rows of a kind and a sentence, and whether nodes share fast links, of which the map knows nothing. */
export function takenRows(found) {
  const { nodes, gpus_per_node: gpus, accelerator } = knownOf(found);
  const chip = catalog.accelerators[accelerator];
  const said = nodes && gpus && chip?.host_gpus ? hosts_words(nodes, gpus, nodes, chip) : "";
  return [...rowsOf(found), ...(said ? [["warning", `${said}.`]] : [])];
}

const SIZES = { nodes: "nodes", gpus_per_node: "gpus", tp: "tp", cp: "cp", ep: "ep", etp: "etp", pp: "pp", order: "order" };
const USUAL = { tp: 1, cp: 1, ep: 1, etp: null, pp: 1, dp: null, order: "megatron" };

/**
 * Compares hosts, or ranks that a program printed, with a layout: { hosts, ranks, rows }, rows of a
 * kind and a sentence; null for other texts.
 */
export function placesOf(text, parallel) {
  const hosts = read_hosts(text);
  if (!hosts) return null;
  const { sentences, ranks } = differences(parallel, hosts);
  const read = hosts.groups.length ? plural(hosts.groups.length, "group") : plural(hosts.names.length, "host");
  const rows = sentences.map((sentence) => ["warning", `${sentence[0].toUpperCase()}${sentence.slice(1)}.`]);
  if (!rows.length) rows.push(["good", "It agrees with the map."]);
  if (ranks.length) rows.push(["plain", `The map marks the ${plural(ranks.length, "rank")} that ${ranks.length === 1 ? "differs" : "differ"}.`]);
  const used = hosts.names.length ? " Hostfile and Rankfile above have its names." : "";
  return { hosts, ranks, rows: [["plain", `Read as ${KINDS[hosts.kind] ?? hosts.kind}: ${read}.${used}`], ...rows] };
}

const KINDS = { mesh: "a device mesh", groups: "groups of ranks", hostnames: "host names", hostfile: "a hostfile", rankfile: "a rankfile", srun: "ranks with their hosts" };

const OTHER = ["dp", "order", "microbatches", ...Object.keys(SIZES)];

/** What a text says of its job beyond the layout, in the modeler's keys. */
function jobOfText(known) {
  const written = (unit, value) => (typeof value === "boolean" ? Number(value) : unit ? String(value).replace(unit, "").trim() : value);
  const said = catalog.options.filter(({ name }) => name in known && (!OTHER.includes(name) || (name === "microbatches" && !("global_batch" in known))));
  return new URLSearchParams(said.map(({ name, key, unit }) => [key, String(written(unit, known[name]))]));
}

/**
 * What a text says of a layout: `changes` to a state of the rank map, null where it says nothing of
 * one; `job`, what it says beyond the layout; `found`, all that was read; `problems` in words. A cluster that the text leaves out is kept.
 */
export function takeLayout(text, answers = {}) {
  let found;
  try {
    found = takeText(text, answers, modelFile);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { changes: null, found: null, problems: [error.message] };
  }
  const known = knownOf(found);
  const changes = { ...USUAL };
  for (const [name, key] of Object.entries(SIZES)) if (name in known) changes[key] = known[name];
  const problems = Object.values(SIZES)
    .filter((key) => Number.isInteger(changes[key]) && (changes[key] < 1 || changes[key] > MOST_RANKS))
    .map((key) => `${key}: expected a whole number from 1 to ${grouped(MOST_RANKS)}, got ${changes[key]}`);
  const says = Object.keys(SIZES).some((name) => name !== "order" && name in found.taken);
  const turned = found.taken.order === "megatron-tp-pp-dp";
  if (!says && !turned && !found.asked.length) problems.push("no option about the layout was found, such as --tensor-model-parallel-size 8");
  return { changes: problems.length ? null : changes, job: jobOfText(known), found, problems };
}
