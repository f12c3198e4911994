// The parts of the step's time.

import { axis, box, label, picture, round, textWidth } from "./drawing.js";
import { percent, plainNumber, seconds } from "./quantities.js";
import { sum } from "../engine/runtime.js";
import { hiddenOf, kindsOf, partsOf } from "./modeler_model.js";

/** How an axis writes seconds: all in seconds, or all with one prefix. */
export const secondsTo = (high) => (at) => (high < 1 ? seconds(at) : `${plainNumber(at)}\u00a0s`);

/**
 * The parts of the step's time, one bar per configuration on one scale, with a thinner bar below for
 * hidden communication. Parts that are wide enough show their name and share.
 */
export function breakdown(configurations, width) {
  const named = configurations.length > 1;
  const left = named ? 18 : 0;
  const total = Math.max(...configurations.map(({ step }) => step.step_time_s));
  const hiddenEnd = Math.max(...configurations.map((found) => sum(hiddenOf(found).map((part) => part.seconds))));
  const high = Math.max(total, hiddenEnd);
  const scale = (value) => left + (value / high) * (width - left - 1) + 0.5;
  const children = [];
  let y = 2;
  configurations.forEach((found, index) => {
    if (named) children.push(label("AB"[index], 0, y + 22, { class: "modeler-strong" }));
    children.push(...stacked(boxesOf(found), scale, y, 32, found.step.step_time_s));
    y += 36;
    const hidden = hiddenOf(found);
    if (hidden.length) {
      children.push(...stacked(hidden, scale, y, 16, null));
      y += 20;
    }
    y += named ? 8 : 0;
  });
  children.push(...axis(scale, high, y, secondsTo(high), width < 500 ? 3 : 6));
  return picture(`Time of a step in parts: ${configurations.map(said).join("; ")}`, width, y + 22, ...children);
}

// Computation by kind, in one color.
const boxesOf = (found) =>
  partsOf(found).flatMap((part) => {
    const kinds = part.key === "compute" ? kindsOf(found) : [];
    return kinds.length ? kinds.map((kind) => ({ ...part, ...kind })) : [part];
  });

const said = (found) =>
  boxesOf(found)
    .map(({ label: name, seconds: s }) => `${name} ${seconds(s)}`)
    .join(", ");

// Segments end to end; a `total` of null marks what runs behind something else.
function stacked(parts, scale, y, height, total) {
  let from = 0;
  return parts.flatMap(({ label: name, role, seconds: length }) => {
    const [x, end] = [scale(from), scale(from + length)];
    from += length;
    const share = total === null ? "" : ` (${percent(length / total)})`;
    const shape = box(
      role,
      x,
      y,
      end - x,
      height,
      `${name}: ${seconds(length)}${share}`,
      total === null ? { class: `r-${role} modeler-hidden` } : {},
    );
    return [
      shape,
      ...inside(name, total === null ? seconds(length) : percent(length / total, 0), x, end - x, y, height),
    ];
  });
}

// The name and a number in a box, as far as they fit.
function inside(name, number, x, width, y, height) {
  const at = { x: round(x + width / 2), "text-anchor": "middle" };
  const fits = (text) => textWidth(text) + 6 <= width;
  if (height >= 30 && fits(name) && fits(number)) {
    return [label(name, at.x, y + 14, at), label(number, at.x, y + 27, at)];
  }
  const one = [`${name} ${number}`, name, number].find(fits);
  return one ? [label(one, at.x, y + height / 2 + 4, at)] : [];
}
