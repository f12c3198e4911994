// Numbers as people type them, such as `8k`, `4M tokens` or `43,5`, read as the command line reads
// them. Loaded when a field holds more than plain digits.

import { InputError } from "../engine/errors.js";
import { read_quantity } from "../quantity_text.js";
import { typed_amount, typed_batch, typed_count } from "../scenarios/options/typed.js";

/**
 * The value of `text` in a field of this `kind`: { value }, or { expected, nearest }, where `nearest`
 * are numbers that may have been meant. `batch` has the tokens of a sequence and the number of sequences
 * that a batch must be a multiple of, if the field is for a global batch.
 */
export function typedNumber(key, kind, text, batch = null) {
  const [least, most] = kind.ends;
  try {
    const value = batch && kind.name === "global_batch" ? typed_batch(text, batch.sequence, batch.share)
      : kind.round === Math.round ? typed_count(kind.name ?? key, text) : amount(key, kind, text);
    if (value >= least && value <= most) return { value };
    // Shares are often typed as percentages.
    const meant = most === 1 && value > 1 && value <= 100 ? value / 100 : value;
    return { expected: kind.expected, nearest: [Math.min(most, Math.max(least, meant))] };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const near = error.nearest.map((one) => Number(one.replaceAll(",", ""))).filter((one) => one >= least && one <= most);
    return { expected: (error.key && error.expected) || kind.expected, nearest: near };
  }
}

function amount(key, { unit }, text) {
  const one = read_quantity(`1 ${unit || ""}`);
  return Number(typed_amount(key, text, one.unit, one.value).toPrecision(12));
}
