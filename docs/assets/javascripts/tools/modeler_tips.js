// Recommendations and sensitivities, from variants that were evaluated.

import { el, svgEl, button } from "./dom.js";
import { bytes, change } from "./quantities.js";
import { num, table } from "./modeler_table.js";

/** A list of what to change, each with a button that does it. */
export function tips(now, found, apply) {
  if (!found.length) {
    const what =
      now.memory.fits === false
        ? "No single change of those that were tried makes it fit."
        : "No single change of those that were tried gains half a percent and fits.";
    return [el("p", { class: "modeler-note" }, what)];
  }
  return [
    el(
      "ul",
      { class: "modeler-tips" },
      found.map(({ changes, text, reasons, gain }) =>
        el(
          "li",
          {},
          el(
            "p",
            {},
            el("strong", {}, text[0].toUpperCase() + text.slice(1)),
            ":",
            el("span", { class: gain >= 0 ? "modeler-good" : "modeler-bad" }, ` ${change(gain)} tokens/s per GPU`),
            el("br"),
            el("span", { class: "modeler-note" }, reasons.join(" · ")),
          ),
          button("Apply", () => apply(changes), { "aria-label": `Apply ${text}` }),
        ),
      ),
    ),
  ];
}

/** What one more unit of each input buys, largest effect first. `rows` are { name, effect }. */
export function sensitivities(rows) {
  const most = Math.max(...rows.map(({ effect }) => Math.abs(effect.throughput)), 1e-9);
  const sorted = [...rows].sort((one, other) => other.effect.throughput - one.effect.throughput);
  const body = sorted.map(({ name, effect: { throughput, step_time, memory_bytes, fits } }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      num(change(throughput)),
      el("td", {}, bar(throughput / most)),
      num(change(step_time)),
      num(
        Math.abs(memory_bytes) < 5e6 ? "same" : `${memory_bytes > 0 ? "+" : ""}${bytes(memory_bytes)}`,
        fits === false ? " ✕" : "",
      ),
    ),
  );
  return [
    table(
      "What one more unit buys",
      ["one more unit", "#tokens/s per GPU", "effect", "#step time", "#fullest GPU"],
      body,
    ),
    el(
      "p",
      { class: "modeler-note" },
      "The next value that the layout allows, the batch growing with it where it must; links and peaks 10% faster. ✕ does not fit.",
    ),
  ];
}

// From the middle to the right what is gained, to the left what is lost.
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
