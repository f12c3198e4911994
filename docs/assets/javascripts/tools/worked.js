// Lines behind a number that is no single formula: sums and products that the engine carried out,
// in the shape of engine/worked.js. Pure.

/** Terms that add up: [[label, value], …]. */
export function sumLine(doc, terms, total, format) {
  const kept = terms.filter(([, value]) => Math.abs(value) > 0);
  return {
    doc,
    symbols: kept.map(([label]) => label).join(" + "),
    text: kept.length > 1 ? `${kept.map(([, value]) => format(value)).join(" + ")} = ${format(total)}` : format(total),
  };
}

/** A calculation in words and in numbers. */
export const plainLine = (doc, symbols, text) => ({ doc, symbols, text });
