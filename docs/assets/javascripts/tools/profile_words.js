// The profile reader's results as text, word for word as `figgen profile` and `figgen memory-snapshot`. Pure.

/** The answer, then the sections as text: title, table and notes of each. */
export const profileText = (answer, sections) => text([[answer], ...sections.map(({ title, rows, left, notes }) =>
  [...(title ? [title] : []), ...(rows.length ? aligned(rows, left) : []), ...notes])]);

/** The command line's output for a snapshot. */
export const snapshotText = ({ sentence, refusals, rows, kinds }) =>
  text([sentence ? [sentence] : [], refusals, aligned(rows, 1), kinds].filter((part) => part.length));

const text = (parts) => `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`;

// Rows as lines of equal columns: the first `left` of them flush left, the others flush right.
function aligned(rows, left) {
  const size = (cell) => Array.from(cell).length;
  const widths = rows[0].map((_, column) => rows.reduce((most, row) => Math.max(most, size(row[column])), 0));
  return rows.map((row) => row.map((cell, column) => {
    const pad = " ".repeat(widths[column] - size(cell));
    return column < left ? cell + pad : pad + cell;
  }).join("  ").trimEnd());
}
