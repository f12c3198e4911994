// Hardware of the modeler: nodes of the catalog, and numbers as the reader's own hardware. Pure.

import { ownOf } from "./modeler_own.js";
import { OWN, SCALES } from "./modeler_state.js";

/** Nodes of the catalog, one GPU with its network: { name, label, changes } to a state. */
export function nodesOf({ presets, links }) {
  const entries = Object.entries(presets).filter(([, { kind }]) => kind === "hardware");
  return entries.map(([name, { title, choices: { gpus_per_node: gpus, accelerator: chip, nic } }]) => {
    const gigabits = (8 * links[nic].bandwidth_bytes_per_s) / 1e9;
    const label = `${gpus} × ${chip.split("-")[0].toUpperCase()}, ${gigabits} Gb/s`;
    return { name, title, label, changes: { gpus, chip, nic } };
  });
}

/** The same layout on nodes of a different size, as many as come nearest to its GPUs. */
export function onNodes(state, { gpus, ...changes }) {
  const world = state.nodes * state.gpus;
  const { tp, cp, pp, ep } = state;
  const etp = state.etp ?? tp;
  const fits = (nodes) => (nodes * gpus) % (tp * cp * pp) === 0 && (nodes * gpus) % (ep === 1 ? 1 : etp * ep * pp) === 0;
  const middle = Math.max(1, Math.round(world / gpus));
  for (let step = 0; step <= middle + tp * cp * pp * ep; step++) {
    const nodes = [middle + step, middle - step].find((count) => count > 0 && fits(count));
    if (nodes) return { ...changes, gpus, nodes };
  }
  return { ...changes, gpus };
}

/** The reader's own hardware after `changes`, starting with the numbers of a job. */
export function ownFrom({ setup: { shape }, cluster, capacity_bytes, compute_efficiency }, changes) {
  const own = {};
  if (changes.model === OWN) {
    Object.assign(own, ownOf(shape));
  }
  if (changes.chip === OWN) {
    own.peak = cluster.peak_flops_per_s / SCALES.peak;
    own.up = cluster.scale_up_bandwidth_bytes_per_s / SCALES.up;
    // A chip that nobody has timed.
    own.efficiency = Number(compute_efficiency.toPrecision(6));
    if (capacity_bytes) own.hbm = capacity_bytes / SCALES.hbm;
  }
  if (changes.nic === OWN) own.net = cluster.network_bandwidth_bytes_per_s / SCALES.net;
  return { ...own, ...changes };
}
