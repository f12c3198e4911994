// Numbers as a reader of the tools sees them; how quantities are written is engine/quantity.js.

import { plainNumber, quantity as written } from "../engine/quantity.js";

export { plainNumber };

/** `value`, in SI and in `unit`, as a page of the guide would print it. */
export const quantity = (value, unit = "1", spec = "") => written(value, unit, spec).text;

/** 0.2727 as "27.3%". */
export const percent = (share, decimals = 1) => quantity(share, "1", `.${decimals}%`);

/** A change with its sign: +12.3%, −4.0%, ±0%. */
export function change(ratio, decimals = 1) {
  if (Number((100 * ratio).toFixed(decimals)) === 0) return "±0%";
  return `${ratio > 0 ? "+" : ""}${percent(ratio, decimals)}`;
}

export const seconds = (value) => quantity(value, "s");
export const bytes = (value) => quantity(value, "B");

/**
 * The number that `text` writes, NaN for none: commas between groups of three digits separate
 * thousands, a single other comma is a decimal comma. As figgen.units.parse_quantity reads it.
 */
export function typedNumber(text) {
  const [, digits, power] = /^([-+]?[\d.,]+)(e[-+]?\d+)?$/i.exec(text.trim()) ?? [];
  if (digits === undefined) return NaN;
  const thousands = /^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(digits);
  const comma = /^[-+]?([1-9]\d{0,2}(\.\d{3})+|\d+),\d+$/.test(digits);
  const plain = thousands ? digits.replaceAll(",", "")
    : comma ? digits.replaceAll(".", "").replace(",", ".") : digits;
  return Number(`${plain}${power ?? ""}`);
}
