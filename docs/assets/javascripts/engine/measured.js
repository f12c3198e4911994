// Rates that a reader measured, in the place of datasheets; mirrors figgen.scenarios.runs.measured_rates
// and what figgen.scenarios.runs.rates makes of them.

import { InputError, closest } from "./errors.js";

const [GIGA, MICRO] = [1e9, 1e-6];
const [RATE, LINE] = [[GIGA], [GIGA, MICRO]];
/** Parts of a machine with the units of their numbers. */
export const PARTS = {
  bf16: LINE, fp16: LINE, fp8: LINE, fp4: LINE, tf32: LINE, attention: RATE, memory: RATE, near: LINE, far: LINE,
  nearshuffle: RATE, farshuffle: RATE, capacity: RATE,
};

/** Parts of a text such as bf16-701000-2.1_memory-2800, in SI. Throws InputError for another. */
export function readRates(text) {
  const known = {};
  for (const part of text.split("_")) {
    const [name, ...words] = part.split("-");
    const units = Object.hasOwn(PARTS, name) ? PARTS[name] : [];
    const found = units.map((unit, at) => (words[at] ? words[at] * unit : NaN));
    const bad = words.length !== units.length || !(found[0] > 0) || found.some((one) => !(one >= 0 && one < Infinity));
    if (Object.hasOwn(known, name) || bad) {
      const expected = "parts such as bf16-700000-2_memory-2800";
      throw new InputError("measured", { expected, got: part.slice(0, 40), nearest: closest(name, Object.keys(PARTS)) });
    }
    known[name] = found;
  }
  return known;
}

/** What of a cluster was measured. */
export const linksOf = ({ near, far, memory }) => ({
  ...(near && { scale_up_bandwidth_bytes_per_s: near[0], scale_up_latency_s: near[1] }),
  ...(far && { network_bandwidth_bytes_per_s: far[0], network_latency_s: far[1] }),
  ...(memory && { memory_bandwidth_bytes_per_s: memory[0] }),
});

/** What measurements replace of what software attains; `rates` have its shares of products, `heads` that of narrow heads. */
export function asMeasured(known, dtype, rates, heads) {
  const { attention, memory, near, far, nearshuffle = near, farshuffle = far } = known;
  const [product, plain] = [known[dtype], known.bf16 ?? known.fp16];
  return {
    ...(product && {
      product_flops_per_s: product[0] * rates.product_share, expert_flops_per_s: product[0] * rates.expert_share,
      product_start_s: product[1],
    }),
    ...(plain && { plain_flops_per_s: plain[0] * rates.plain_share }),
    ...(attention && { attention_flops_per_s: attention[0] * heads }),
    ...(memory && { memory_bytes_per_s: memory[0] }),
    ...(near && { scale_up_bytes_per_s: near[0], near_latency_s: near[1] }),
    ...(far && { network_bytes_per_s: far[0], latency_s: far[1] }),
    ...(nearshuffle && { near_shuffle_bytes_per_s: nearshuffle[0] }),
    ...(farshuffle && { shuffle_bytes_per_s: farshuffle[0] }),
  };
}
