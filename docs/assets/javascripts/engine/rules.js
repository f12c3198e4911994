// What messages can hide behind and what FLOPs are counted, in words; mirrors
// figgen.models.step.stage_time.rule_of and compute.

import { inTurns } from "./stage_time.js";
import { AGAIN, BOUNDARY, GRADIENTS, HEAD_AGAIN, KEYS, TIED, TOKENS, WEIGHTS, WITHIN } from "./traffic.js";

const ALONE = "exposed: there is no second buffer";

/** What a row of a step's communication can hide behind. */
export function ruleOf(setup, { purpose, when }) {
  const data = purpose === GRADIENTS || purpose === WEIGHTS;
  if (purpose === AGAIN || purpose === HEAD_AGAIN) return "behind the gradients of inputs";
  if (purpose === KEYS && setup.context_exchange === "p2p") {
    return inTurns(setup) ? "each send behind the attention of one block" : ALONE;
  }
  if ((purpose === TOKENS || purpose === WITHIN) && setup.order.overlapped.size) {
    return "behind the other half of a forward-backward pair";
  }
  if (purpose === BOUNDARY) return "as far as the simulated step does not grow";
  if (data && !setup.overlap_data_parallel) return "exposed: overlap is off";
  if (data && when === "microbatch") {
    if (!setup.sharded.gathers) return "buckets behind each backward";
    return setup.double_buffering ? "behind the layer before it" : ALONE;
  }
  if (purpose === GRADIENTS) return "buckets behind the last backward, and the pipeline's drain";
  if (purpose === WEIGHTS) return "buckets behind the first forward, and the pipeline's fill";
  return purpose === TIED ? "exposed: after the last backward" : "exposed: the next operation needs it";
}

/** A step as `figgen step --json` prints it: each row of its communication with its rule. */
export function inWords({ setup, step }) {
  const said = ({ sent_bytes, ...row }) => ({ ...row, rule: ruleOf(setup, row), sent_bytes });
  return { ...step, communication: step.communication.map(said) };
}

/** What counts per token by convention, and whether recomputation does: HFU, not MFU. */
export const COUNTED = new Map(Object.entries({
  "6nd": ["6 per active parameter, embedding table included", false],
  "6nd+attention": ["6 per multiplied weight, attention whole", false],
  causal: ["6 per multiplied weight, masked half of attention left out", false],
  "hfu-full": ["with every layer's forward repeated", true],
  "hfu-selective": ["with the attention core's forward repeated", true],
  "hfu-selective-korthikanti": ["with all of the attention core counted twice", true],
  megatron: ["96·B·s·L·h²·(1 + s/6h + V/16Lh), forward repeated", true],
}));
