// Tables of the catalog are complete without this script, which adds sorting and a filter.

const order = (cell) => (cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value));

// Numbers come before texts, and what is missing comes last either way.
function compare(a, b, way) {
  if (a === "–" || b === "–") return (a === "–") - (b === "–");
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return way * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
}

function sort(table, heading) {
  const way = heading.ariaSort === "ascending" ? -1 : 1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.ariaSort = way > 0 ? "ascending" : "descending";
  const at = heading.cellIndex;
  const rows = [...table.tBodies[0].rows].map((row) => [order(row.cells[at]), row]);
  rows.sort(([a], [b]) => compare(a, b, way));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function filter(table, words, told) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  told.value = `${shown} of ${table.tBodies[0].rows.length} rows`;
}

export function enhance(table) {
  if (table.dataset.live) return;
  table.dataset.live = "yes";
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, heading));
  }
  const box = table.closest(".data-table").previousElementSibling;
  const label = document.createElement("label");
  const input = document.createElement("input");
  const told = document.createElement("output");
  input.type = "search";
  label.append(`Filter ${table.ariaLabel.toLowerCase()} `, input);
  box.append(label, " ", told);
  input.addEventListener("input", () => filter(table, input.value, told));
  filter(table, "", told);
}
