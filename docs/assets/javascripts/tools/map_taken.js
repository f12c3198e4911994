// What a script or a configuration says of a layout, for the rank map. Loaded when there is one.

import { grouped, InputError } from "../engine/errors.js";
import { MOST_RANKS } from "../models/machine/layout.js";
import { askFor, takeText, takenRows, told } from "./taken.js";

export { askFor, takenRows, told };

const SIZES = { nodes: "nodes", gpus_per_node: "gpus", tp: "tp", cp: "cp", ep: "ep", etp: "etp", pp: "pp", order: "order" };
const USUAL = { tp: 1, cp: 1, ep: 1, etp: null, pp: 1, dp: null, order: "megatron" };

/**
 * What a text says of a layout: `changes` to a state of the rank map, null where it says nothing of
 * one; `found`, all that was read; `problems` in words. A cluster that the text leaves out is kept.
 */
export function takeLayout(text, answers = {}) {
  let found;
  try {
    found = takeText(text, answers);
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
