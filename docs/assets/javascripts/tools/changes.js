// Changes of a configuration in words, for buttons and for sentences.

import { labelOf, wordOf } from "./modeler_options.js";
import { plainNumber } from "./quantities.js";

// The word for a reader's own shape; options have words of their own.
const OWN_LABELS = {
  heads: "heads", kv_heads: "KV heads", ffn_hidden: "FFN width", experts: "experts", top_k: "experts per token",
  layers: "layers", hidden: "hidden width",
};

/** The word for a choice in a sentence. */
export const nameOf = (key) => labelOf(key) ?? OWN_LABELS[key] ?? key;

function shown(key, value) {
  if (value === null || value === undefined) return "auto";
  if (typeof value === "number") return plainNumber(value, 4);
  const word = key === "model" || key === "chip" || key === "nic" ? undefined : wordOf(key, value);
  return { true: "on", false: "off" }[value] ?? word ?? value;
}

/** Changes of a state in words: "PP 4 → 3, microbatches 8 → 16". */
export function changesText(state, changes, resolved = state) {
  const words = Object.entries(changes)
    .filter(([key, value]) => value !== state[key] && value !== resolved[key] && !(key === "chunks" && value === null))
    .map(([key, value]) => `${nameOf(key)} ${shown(key, resolved[key] ?? state[key])} → ${shown(key, value)}`);
  return words.join(", ");
}

/** A state with the values that the engine derived for it: microbatches, sequence, chunks. */
export const resolvedOf = ({ state, setup, job }) => ({
  ...state,
  microbatches: setup.microbatches,
  sequence: setup.sequence,
  chunks: state.chunks ?? setup.placement.chunks,
  efficiency: state.efficiency ?? Math.round(1e3 * job.matmul_share) / 1e3,
});
