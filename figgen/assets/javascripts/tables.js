// Tables of the catalog are complete without this script, which adds sorting and a filter.

const order = (cell) => (cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value));

// Numbers come before texts, and missing values come last in both directions.
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

const FIRST = 40; // rows before a reader asks for more, as in site.css

export function enhance(table) {
  if (table.dataset.live) return;
  table.dataset.live = "yes";
  const { rows } = table.tBodies[0];
  const box = table.closest(".data-table");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const told = document.createElement("output");
  const more = document.createElement("button");
  let most = FIRST;
  function show() {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      found += !row.hidden;
      row.classList.toggle("is-later", found > most);
    }
    box.classList.add("is-live");
    told.value = `${found} of ${rows.length} rows`;
    more.textContent = `Show all ${found} rows`;
    more.hidden = found <= most;
  }
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      sort(table, heading);
      show();
    });
  }
  input.type = "search";
  label.append(`Filter ${table.ariaLabel.toLowerCase()} `, input);
  box.previousElementSibling.append(label, " ", told);
  input.addEventListener("input", show);
  told.value = `${rows.length} rows`;
  more.type = "button";
  more.className = "fig-button data-more";
  more.textContent = `Show all ${rows.length} rows`;
  more.hidden = rows.length <= most;
  more.addEventListener("click", () => {
    most = Infinity;
    show();
    rows[FIRST].querySelector("a").focus();
  });
  box.append(more);
}
