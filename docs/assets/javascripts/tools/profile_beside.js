// Compares a recorded rank with the step that the modeler computes for an address. Loaded when a reader
// gives an address; the comparison is printed from figgen.models.profiles.profile_beside.

import { catalog } from "../catalog.js";
import { beside } from "../models/profiles/profile_beside.js";
import { beside_section } from "../models/profiles/profile_text.js";
import { evaluate } from "./modeler_model.js";
import { sequenceIn } from "./modeler_options.js";
import { addressKinds, fromQuery, schemaOf } from "./modeler_state.js";
import { quantity } from "./quantities.js";
import { readAddress } from "./state.js";

/**
 * The modeler's answer for an address or its query: { setup, step }, or { error }; with `problems` of the
 * address. An address of a different page is a problem, and not the modeler's first configuration.
 */
export async function modelled(address) {
  const query = address.replace(/#.*/, "");
  const at = query.indexOf("?");
  if (at < 0 && !/^[\w.]+=/.test(query)) {
    return { error: { message: `the configuration: expected an address of the modeler, which has a "?", got '${query.slice(0, 60)}'` } };
  }
  const schema = schemaOf(catalog);
  const { a, problems } = await readAddress(query.slice(at + 1), addressKinds(schema), (given) => fromQuery(schema, catalog, given), sequenceIn(catalog));
  return { ...evaluate(catalog, a), problems };
}

/** { section, data }: the parts of a rank's step next to the model's, the largest difference first. */
export function besideModel(rank, step) {
  const estimate = {
    exposed: Object.entries(step.exposed_s), bubble_s: step.bubble_s, compute_s: step.compute_s, recompute_s: step.recompute_s,
  };
  const data = beside(rank, estimate);
  return { section: beside_section(rank, data, (value, unit, spec) => quantity(value, unit, spec)), data };
}

/** The modeler's query for the job of a trace; null if the trace does not name a GPU. */
export function queryOf({ device, ranks, sizes }) {
  const chips = Object.entries(catalog.accelerators ?? {});
  const words = (name) => name.toLowerCase().match(/[a-z]+\d+[a-z]*|\d+gb|hbm\w*|sxm|pcie|nvl/g) ?? [];
  const asked = words(device.replace(/(\d+)\s*GB/gi, "$1gb"));
  const scored = chips.map(([id, chip]) => [words(`${id} ${chip.name ?? ""}`.replace(/(\d+)\s*GB/gi, "$1gb")).filter((word) => asked.includes(word)).length, id]);
  const [score, chip] = scored.sort((one, other) => other[0] - one[0])[0] ?? [0];
  if (!score || !ranks) return null;
  // It assumes nodes of eight, and only groups for which the trace has calls.
  const gpus = Math.min(8, ranks);
  const query = new URLSearchParams({ chip, nodes: String(Math.ceil(ranks / gpus)), gpus: String(gpus), tp: "1", pp: "1" });
  for (const [axis, size] of sizes) query.set(axis, String(size));
  return `?${query}`;
}
