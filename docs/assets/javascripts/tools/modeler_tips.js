// Recommendations and sensitivities, from variants that were evaluated.

import { el, svgEl, button } from "./dom.js";
import { value } from "./modeler_answer.js";
import { bytes, change } from "./quantities.js";
import { note, num, oneStop, table } from "./modeler_table.js";

/** Recommended changes, in two lists, each with a button that applies it; tip 3 is the variant "t3". */
export function tips(now, found, at, apply) {
  if (!found.length) {
    const what =
      now.memory.fits === false
        ? "None of the changes we tried, alone or in pairs, makes it fit."
        : "No single change that fits gains half a percent.";
    return [note(what)];
  }
  const item = (tip, index) => [tip.same, tipItem(tip, `t${index}`, at, now, apply)];
  const items = found.map(item);
  return [
    ["With the same GPUs and the same batch", true],
    ["With a different batch or different GPUs", false],
  ].flatMap(([title, same]) => {
    const mine = items.filter(([of]) => of === same).map(([, one]) => one);
    return mine.length ? [el("h3", {}, title), el("ul", { class: "modeler-tips" }, mine)] : [];
  });
}

function tipItem({ changes, text, reasons, gain }, of, at, now, apply) {
  const words = reasons.map(({ name, before, after, how }) => [
    " · ",
    name,
    how ? [" ", value(before, how, at), " → ", value(after, how, of)] : [],
  ]);
  if (now.memory.fits === false) words.unshift([" · ", "fits"]);
  const said = el(
    "li",
    { "data-numbers": "" },
    el(
      "p",
      {},
      el("strong", {}, text[0].toUpperCase() + text.slice(1)),
      ": ",
      el(
        "span",
        { class: gain >= 0 ? "modeler-good" : "modeler-bad" },
        value(change(gain), "change:throughput", of),
        " tokens/s per GPU",
      ),
      el("br"),
      el("span", { class: "modeler-note" }, words.flat().slice(1)),
    ),
    button("Apply", () => apply(changes), { "aria-label": `Apply ${text}` }),
  );
  return oneStop(said);
}

/**
 * The effect of one more unit of each input, largest first; row 3 of `rows`, which are
 * { name, effect }, is the variant "u3". `missing` are inputs without a next value, `fitting` is
 * whether the configuration itself fits.
 */
export function sensitivities(rows, missing, fitting) {
  const most = Math.max(...rows.map(({ effect }) => Math.abs(effect.throughput)), 1e-9);
  const numbered = rows.map((row, index) => ({ ...row, of: `u${index}` }));
  numbered.sort((one, other) => other.effect.throughput - one.effect.throughput);
  const body = numbered.map(({ name, of, effect: { throughput, step_time, memory_bytes, fits } }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "modeler-wide" }, name),
      num(value(change(throughput), "change:throughput", of)),
      el("td", { class: "modeler-effect" }, bar(throughput / most)),
      num(value(change(step_time), "change:step", of)),
      num(
        value(
          Math.abs(memory_bytes) < 5e6 ? "same" : `${memory_bytes > 0 ? "+" : "−"}${bytes(Math.abs(memory_bytes))}`,
          "change:fullest",
          of,
        ),
        fits === fitting ? "" : fits ? " ✓ fits" : " ✕ too much",
      ),
    ),
  );
  return [
    table("What one more unit buys", ["one more unit", "#tokens/s per GPU", "~effect", "#step time", "#fullest GPU"], body),
    note(
      "Each input moves to the next value that the layout allows. Microbatches keep the global batch if possible; otherwise the new batch is given. Links and peaks get 10% faster, latencies 10% shorter.",
      missing.length ? ` No next value works for ${missing.join(", ")}.` : "",
    ),
  ];
}

// Gains extend from the middle to the right, losses to the left.
function bar(share) {
  const [width, middle] = [120, 60];
  const length = Math.max(0.5, Math.abs(share) * (middle - 2));
  return svgEl(
    "svg",
    { class: "fig", viewBox: `0 0 ${width} 14`, width, height: 14, "aria-hidden": "true" },
    svgEl("rect", {
      class: share >= 0 ? "r-cp" : "r-exposed",
      x: share >= 0 ? middle : middle - length,
      y: 2,
      width: length,
      height: 10,
    }),
    svgEl("line", { class: "modeler-tick", x1: middle, x2: middle, y1: 0, y2: 14 }),
  );
}
