// The current colors of the rank map, as text for a canvas or a file.

import { SHADES } from "./map_groups.js";

const known = new Map(); // hue → inks, until the palette changes

/** Inks for groups in `hue` ("tp", "cp" …; undefined without groups). */
export function inksOf(hue) {
  if (known.has(hue)) return known.get(hue);
  const style = getComputedStyle(document.body);
  const ink = (name) => style.getPropertyValue(name).trim();
  const inks = {
    shades: hue ? Array.from({ length: SHADES }, (_, shade) => ink(`--fig-${hue}-${shade}`)) : [],
    plain: ink("--fig-neutral-soft"),
    ink: ink("--fig-ink"),
    muted: ink("--fig-muted"),
    paper: ink("--fig-paper"),
    axis: Object.fromEntries(
      ["tp", "cp", "ep", "dp", "pp"].map((axis) => [axis, ink(`--fig-${axis}`)]),
    ),
    font: style.fontFamily,
  };
  known.set(hue, inks);
  return inks;
}

inksOf.forget = () => known.clear();
