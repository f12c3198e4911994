// Changes of a configuration in words, for buttons and for sentences.

import { SMALL } from "../engine/recomputation.js";
import { plainNumber } from "./quantities.js";

/** What a reader sees a choice called. */
export const LABELS = {
  nodes: "nodes",
  tp: "TP",
  cp: "CP",
  ep: "EP",
  etp: "ETP",
  pp: "PP",
  microbatches: "microbatches",
  microbatch_size: "microbatch size",
  sequence: "sequence length",
  chunks: "chunks",
  schedule: "schedule",
  zero: "ZeRO stage",
  recompute: "recomputation",
  activations: "kept activations",
  sp: "sequence parallelism",
  flash: "FlashAttention",
  overlap: "overlap of data parallelism",
  double: "double buffering",
  exchange: "exchange of keys and values",
  efficiency: "efficiency of products",
  buckets: "buckets",
  gpus: "GPUs per node",
  order: "rank order",
  dtype: "number format",
  model: "model",
  heads: "heads",
  kv_heads: "KV heads",
  ffn_hidden: "FFN width",
  chip: "accelerator",
  nic: "network link",
  experts: "experts",
  top_k: "experts per token",
  layers: "layers",
  hidden: "hidden width",
  recipe: "precision of the state",
  dropout: "dropout",
};

/** What a reader sees a schedule called. */
export const SCHEDULE_NAMES = {
  naive: "one microbatch at a time",
  gpipe: "GPipe",
  "looped-bfs": "looped breadth-first",
  "1f1b": "1F1B",
  "interleaved-1f1b": "interleaved 1F1B",
  zb1p: "ZB1P",
  zb2p: "ZB2P",
  zbv: "ZB-V",
  "v-half": "V-Half",
  "v-min": "V-Min",
  dualpipe: "DualPipe",
  dualpipev: "DualPipeV",
};

/** What a reader sees recomputation called, in the order of the choices. */
export const RECOMPUTE_NAMES = {
  none: "none",
  selective: "selective: attention core",
  [SMALL]: "outputs of norms and of experts",
  [`${SMALL},mla_up_proj`]: "outputs of norms, of experts and of latent projections",
  "mlp,moe": "feed-forward blocks",
  full: "full: every layer",
};

function shown(value) {
  if (value === null || value === undefined) return "auto";
  if (typeof value === "number") return plainNumber(value, 4);
  return { true: "on", false: "off" }[value] ?? SCHEDULE_NAMES[value] ?? RECOMPUTE_NAMES[value]?.split(":")[0] ?? value;
}

/** Changes of a state in words: "PP 4 → 3, microbatches 8 → 16". */
export function changesText(state, changes, resolved = state) {
  const words = Object.entries(changes)
    .filter(([key, value]) => value !== state[key] && value !== resolved[key] && !(key === "chunks" && value === null))
    .map(([key, value]) => `${LABELS[key] ?? key} ${shown(resolved[key] ?? state[key])} → ${shown(value)}`);
  return words.join(", ");
}

/** A state with what the engine derived for it: microbatches, sequence, chunks. */
export const resolvedOf = ({ state, setup }) => ({
  ...state,
  microbatches: setup.microbatches,
  sequence: setup.sequence,
  chunks: state.chunks ?? setup.order.placement.chunks,
});
