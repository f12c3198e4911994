// The table of communicators of the rank map: groups, sizes, nodes, links.

import { grouped } from "../engine/errors.js";
import { button, el } from "./dom.js";
import { communicatorRows, labelOf } from "./map_groups.js";
import { showsOf } from "./map_state.js";

/** Names of the communicators where there is room. */
export const NAMES = {
  tp: "Tensor parallel",
  cp: "Context parallel",
  ep: "Expert parallel",
  dp: "Data parallel",
  edp: "Expert data parallel",
  pp: "Pipeline parallel",
  "tp-cp": "Tensor and context parallel together",
  "dp-cp": "Data and context parallel together",
  etp: "Expert tensor parallel",
  none: "No communicator",
};

const COLUMNS = [
  ["Groups of", ""],
  ["Grid", ""],
  ["Groups", "num"],
  ["GPUs each", "num"],
  ["Stride", "num"],
  ["Nodes each", "num"],
  ["Links used", ""],
  ["Inside nodes", "num"],
  ["Between nodes", "num"],
];

/** Per communicator: groups, sizes, nodes, links. */
export function makeTable(change) {
  const body = el("tbody");
  const rows = new Map(); // communicator → its row, created when first shown
  const table = el(
    "table",
    { class: "tool-table map-table" },
    el(
      "caption",
      { class: "tool-live" },
      "Communicators and the links between neighbors of their rings",
    ),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        COLUMNS.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text)),
      ),
    ),
    body,
  );
  const share = (part, all) => (all ? `${Math.round((1000 * part) / all) / 10} %` : "–");
  const made = (name) => {
    if (!rows.has(name)) {
      rows.set(
        name,
        el(
          "tr",
          { "data-name": name },
          el(
            "th",
            { scope: "row" },
            button(labelOf(name), () => change({ show: name, group: null }), {
              class: `tool-button map-tag map-hue-${name}`,
              title: NAMES[name],
            }),
          ),
          COLUMNS.slice(1).map(([, kind]) => el("td", { class: kind || null })),
        ),
      );
    }
    return rows.get(name);
  };
  function update(parallel, show) {
    const shown = communicatorRows(parallel, showsOf(parallel)).map((row) => {
      const links = row.intra_node_links + row.inter_node_links;
      const cells = [
        row.grid,
        grouped(row.group_count),
        grouped(row.size),
        row.size === 1 || row.stride === null ? "–" : grouped(row.stride),
        row.nodes,
        row.level,
        share(row.intra_node_links, links),
        share(row.inter_node_links, links),
      ];
      const element = made(row.name);
      element.classList.toggle("is-shown", row.name === show);
      cells.forEach((text, at) => put(element.children[at + 1], text));
      return element;
    });
    if (shown.length !== body.children.length || shown.some((row, at) => row !== body.children[at]))
      body.replaceChildren(...shown);
  }
  return {
    element: el(
      "div",
      { class: "tool-scroll", tabindex: 0, role: "region", "aria-label": "Table of communicators" },
      table,
    ),
    update,
  };
}

// Unchanged text is left alone: a change forces a layout.
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
