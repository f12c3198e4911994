// Numbers as the tools show them, formatted by the guide's code.

import { format_number, shown, span_shown } from "../quantity_shown.js";

export { format_number as plainNumber, span_shown as span };

/** `value`, in SI and in `unit`, as a page of the guide would print it. */
export const quantity = (value, unit = "1", spec = "") => shown(value, unit, spec);

/** 0.2727 as "27.3%". */
export const percent = (share, decimals = 1) => quantity(share, "1", `.${decimals}%`);

/** A change with its sign: +12.3%, −4.0%, ±0%. */
export function change(ratio, decimals = 1) {
  if (Number((100 * ratio).toFixed(decimals)) === 0) return "±0%";
  return `${ratio > 0 ? "+" : ""}${percent(ratio, decimals)}`;
}

export const seconds = (value) => quantity(value, "s");
export const bytes = (value) => quantity(value, "B");
