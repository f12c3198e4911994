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
