// A worked line of the modeler on the page, loaded with the derivations of numbers.

import { el } from "./dom.js";

/** A worked line as elements. */
export function paragraphs({ name, symbol, doc, symbols, text, source, link }) {
  return [
    el("p", {}, doc),
    symbols ? el("p", { class: "modeler-symbols" }, symbol ? `${symbol} = ${symbols}` : symbols) : null,
    el("p", { class: "modeler-line" }, text),
    name
      ? el(
          "p",
          { class: "modeler-note" },
          "Formula ",
          el("a", { href: `../../reference/formulas/#${name}` }, name),
          source ? `; source: ${source}` : "",
        )
      : null,
    link ? el("p", { class: "modeler-note" }, "Source: ", el("a", { href: `../../${link[0]}` }, link[1])) : null,
  ].filter(Boolean);
}
