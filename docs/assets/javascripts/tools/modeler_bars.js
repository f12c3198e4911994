// Bars of the modeler: the step's time in parts, bytes by communicator, memory by pipeline rank.
// Drawn for the width of their box, so that text keeps its size; colours are classes of roles.css.

import { svgEl } from "./dom.js";
import { bytes, percent, plainNumber, seconds } from "./quantities.js";
import { PARTS, axisLabel, hiddenOf, hueOf, partsOf, transfersOf } from "./modeler_model.js";

const CHAR = 6.3; // px of a character of 11.5 px text, generously
export const textWidth = (text) => CHAR * text.length;

/** An SVG of this size that says what it shows. */
export const picture = (label, width, height, ...children) =>
  svgEl("svg", {
    class: "fig modeler-svg", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
  }, ...children);

export const label = (text, x, y, given = {}) => svgEl("text", { x, y, ...given }, text);

/** A box in the colours of a role, with its name for the pointer. */
export const box = (role, x, y, width, height, title, given = {}) =>
  svgEl("rect", { class: `r-${role}`, x: round(x), y: round(y), width: round(Math.max(0, width)), height, ...given },
    title ? svgEl("title", {}, title) : null);

export const round = (value) => Math.round(value * 100) / 100;

/** A round number of steps of 1, 2 or 5 up to `high`. */
export function ticksTo(high, most = 5) {
  if (!(high > 0) || !Number.isFinite(high)) return [0];
  const rough = high / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return [...Array(Math.floor(high / step + 1e-9) + 1).keys()].map((at) => at * step);
}

export function axis(scale, high, y, format, most) {
  return ticksTo(high, most).map((at) => svgEl("g", {},
    svgEl("line", { class: "modeler-tick", x1: round(scale(at)), x2: round(scale(at)), y1: y, y2: y + 4 }),
    label(format(at), round(scale(at)), y + 16, { class: "modeler-muted", "text-anchor": at ? "middle" : "start" })));
}

/**
 * Where the step's time goes, one bar a configuration on one scale, and a thinner one below it for
 * communication that is hidden. Parts that are wide enough carry their name and share.
 */
export function breakdown(configurations, width) {
  const named = configurations.length > 1;
  const left = named ? 18 : 0;
  const total = Math.max(...configurations.map(({ step }) => step.step_time_s));
  const hiddenEnd = Math.max(...configurations.map((found) => hiddenOf(found).reduce((t, { seconds: s }) => t + s, 0)));
  const high = Math.max(total, hiddenEnd);
  const scale = (value) => left + (value / high) * (width - left - 1) + 0.5;
  const children = [];
  let y = 2;
  configurations.forEach((found, index) => {
    if (named) children.push(label("AB"[index], 0, y + 22, { class: "modeler-strong" }));
    children.push(...stacked(partsOf(found), scale, y, 32, found.step.step_time_s));
    y += 36;
    const hidden = hiddenOf(found);
    if (hidden.length) {
      children.push(...stacked(hidden, scale, y, 16, null));
      y += 20;
    }
    y += named ? 8 : 0;
  });
  children.push(...axis(scale, high, y, seconds, width < 500 ? 3 : 6));
  return picture(`Time of a step in parts: ${configurations.map(said).join("; ")}`, width, y + 22, ...children);
}

const said = (found) =>
  partsOf(found).map(({ label: name, seconds: s }) => `${name} ${seconds(s)}`).join(", ");

// Segments end to end; `total` null marks what runs behind something else.
function stacked(parts, scale, y, height, total) {
  let from = 0;
  return parts.flatMap(({ label: name, role, seconds: length }) => {
    const [x, end] = [scale(from), scale(from + length)];
    from += length;
    const share = total === null ? "" : ` (${percent(length / total)})`;
    const shape = box(role, x, y, end - x, height, `${name}: ${seconds(length)}${share}`, total === null ? { class: `r-${role} modeler-hidden` } : {});
    return [shape, ...inside(name, total === null ? seconds(length) : percent(length / total, 0), x, end - x, y, height)];
  });
}

// The name and a number in a box, as much of it as fits.
function inside(name, number, x, width, y, height) {
  const at = { x: round(x + width / 2), "text-anchor": "middle" };
  const fits = (text) => textWidth(text) + 6 <= width;
  if (height >= 30 && fits(name) && fits(number)) {
    return [label(name, at.x, y + 14, at), label(number, at.x, y + 27, at)];
  }
  const one = [`${name} ${number}`, name, number].find(fits);
  return one ? [label(one, at.x, y + height / 2 + 4, at)] : [];
}

/** Bytes that a GPU sends in a step, one bar for each communicator and level of link. */
export function transfers(found, width, levels) {
  const rows = transfersOf(found);
  if (!rows.length) return null;
  const narrow = width < 480;
  const left = narrow ? 0 : 190;
  const high = Math.max(...rows.map((row) => row.bytes));
  const room = width - left - 150;
  const height = narrow ? 40 : 26;
  const children = rows.flatMap((row, at) => {
    const y = at * height + 2;
    const name = `${axisLabel(row.axis)}, ${levels[row.level]}`;
    const length = Math.max(1.5, (row.bytes / high) * (narrow ? width - 150 : room));
    const numbers = `${bytes(row.bytes)} in ${seconds(row.time_s)}`;
    const top = narrow ? y + 15 : y;
    return [
      label(name, narrow ? 0 : left - 8, narrow ? y + 11 : y + 14, { "text-anchor": narrow ? "start" : "end" }),
      box(hueOf(row.axis), left + 0.5, top, length, 18, `${name}: ${numbers}`),
      label(numbers, left + length + 7, top + 13),
    ];
  });
  const told = rows.map((row) => `${axisLabel(row.axis)} ${levels[row.level]} ${bytes(row.bytes)}`).join(", ");
  return picture(`Bytes that a GPU sends in a step: ${told}`, width, rows.length * height + 4, ...children);
}

/** Which pipeline ranks to draw: all, or the ends, the fullest and some between. */
export function shownRanks(ranks, fullest, most = 16) {
  if (ranks.length <= most) return ranks;
  const step = (ranks.length - 1) / (most - 2);
  const chosen = new Set([...Array(most - 1).keys()].map((at) => Math.round(at * step)).concat(fullest));
  return ranks.filter(({ pipeline_rank }) => chosen.has(pipeline_rank));
}

const SOLID = 0.5; // the soft surfaces of the neutral roles are too alike for neighbours

/** Memory of a GPU of each pipeline rank in parts, against the capacity. */
export function memoryBars({ memory }, width) {
  const ranks = shownRanks(memory.ranks, memory.fullest_rank);
  const left = 48;
  const most = Math.max(...memory.ranks.map((rank) => rank.total_bytes));
  const capacity = memory.capacity_bytes;
  const high = Math.max(most, capacity ?? 0) * 1.02;
  const scale = (value) => left + (value / high) * (width - left - 70);
  const height = 22;
  const bottom = ranks.length * height + 18;
  const children = ranks.flatMap((rank, at) => {
    const y = 18 + at * height;
    let from = 0;
    const segments = PARTS.flatMap(([name, title, role]) => {
      const size = rank.bytes[name];
      const [x, end] = [scale(from), scale(from + size)];
      from += size;
      const number = at === 0 && textWidth(title) + 6 <= end - x ? title : "";
      return [box(role, x, y, end - x, 17, `${title}: ${bytes(size)}`, { style: `fill:var(--fig-${role})`, "fill-opacity": SOLID }),
        number ? label(number, round((x + end) / 2), y + 12.5, { "text-anchor": "middle" }) : null];
    });
    const total = bytes(rank.total_bytes);
    return [label(`rank ${rank.pipeline_rank}`, 0, y + 13, rank.pipeline_rank === memory.fullest_rank ? { class: "modeler-strong" } : {}),
      ...segments, label(total, scale(from) + 6, y + 13)];
  });
  if (capacity !== null) {
    const x = round(scale(capacity));
    children.push(
      svgEl("line", { class: "modeler-capacity", x1: x, x2: x, y1: 14, y2: bottom }),
      label(`capacity ${bytes(capacity)}`, x, 10, { "text-anchor": x > width - 90 ? "end" : "middle", class: "modeler-strong" }));
  }
  children.push(...axis(scale, high, bottom, (at) => `${plainNumber(at / 1e9)} GB`, width < 500 ? 3 : 6));
  return picture(`Memory of a GPU of each pipeline rank; the fullest needs ${bytes(most)}`, width, bottom + 22, ...children);
}
