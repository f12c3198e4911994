// What the rank map says beside the picture: the choice of communicator, the legend by group, all
// about one GPU, and the table of communicators.

import { button, el } from "./dom.js";
import { communicatorRows, labelOf, legendOf, plural, pointInWords, rankFacts, ranksInWords } from "./map_groups.js";
import { showsOf } from "./map_state.js";

const PAGE = 8; // groups of the legend at a time

const NAMES = {
  tp: "Tensor parallel", cp: "Context parallel", ep: "Expert parallel", dp: "Data parallel", edp: "Expert data parallel",
  pp: "Pipeline parallel", "tp-cp": "Tensor and context parallel together", "dp-cp": "Data and context parallel together",
  etp: "Expert tensor parallel", none: "No communicator",
};

/** Buttons that say what colours the GPUs. */
export function makeShows(change) {
  const element = el("div", { class: "map-shows tool-actions", role: "group", "aria-label": "Colour by groups of" });
  let names = "";
  function update({ show }, parallel) {
    const offered = showsOf(parallel);
    if (names !== offered.join()) {
      names = offered.join();
      element.replaceChildren(...offered.map((name) => button(name === "none" ? "None" : labelOf(name),
        () => change({ show: name, group: null }), { "data-show": name, title: NAMES[name], class: `tool-button map-hue-${name}` })));
    }
    for (const one of element.children) one.setAttribute("aria-pressed", String(one.dataset.show === show));
  }
  return { element, update };
}

/** Groups of the chosen communicator, a page at a time; a click isolates one. */
export function makeLegend(change) {
  const [title, list] = [el("h2"), el("ul", { class: "map-legend" })];
  const pages = el("div", { class: "tool-actions map-pages" });
  const element = el("section", { class: "map-panel", "aria-label": "Groups" }, title, list, pages);
  let [from, last] = [0, null];
  const entry = () => {
    const show = button("", () => change({ group: show.ariaPressed === "true" ? null : Number(show.dataset.group) }), { class: "map-entry" });
    show.append(el("span"), el("span"));
    return show;
  };
  function update(state, parallel, view) {
    element.hidden = !view;
    if (!view) return;
    if (last?.rows !== view.rows) from = 0;
    if (state.group !== null && (last?.group !== state.group || last?.rows !== view.rows)) from = state.group - (state.group % PAGE);
    last = { rows: view.rows, group: state.group };
    title.textContent = `${labelOf(view.name)}: ${plural(view.count, "group")} of ${view.size.toLocaleString("en")}`;
    const entries = legendOf(parallel, view, from, PAGE);
    while (list.children.length < entries.length) list.append(el("li", {}, entry()));
    Array.from(list.children).forEach((item, at) => {
      item.hidden = at >= entries.length;
      if (!item.hidden) fill(item.children[0], entries[at], view.hue, state.group);
    });
    const turn = (by) => () => {
      from = Math.max(0, Math.min(view.count - 1, from + by));
      update(state, parallel, view);
      (by < 0 ? back : next).focus();
    };
    const back = button("‹", turn(-PAGE), { "aria-label": "Groups before", disabled: from === 0 });
    const next = button("›", turn(PAGE), { "aria-label": "Groups after", disabled: from + PAGE >= view.count });
    const to = el("input", { type: "number", min: 0, max: view.count - 1, "aria-label": "Isolate group number", placeholder: "group", inputmode: "numeric",
      value: state.group ?? "", on: { change: () => change({ group: /^\d+$/.test(to.value) ? Number(to.value) : null }) } });
    pages.replaceChildren(...(view.count > PAGE ? [back, next, to] : []),
      ...(state.group !== null ? [button("Show all", () => { change({ group: null }); list.querySelector("button").focus(); })] : []));
    pages.hidden = !pages.children.length;
  }
  return { element, update };
}

function fill(show, { group, shade, words, nodes }, hue, isolated) {
  show.ariaPressed = String(isolated === group);
  show.dataset.group = group;
  show.ariaLabel = `Group ${group}, ranks ${words}`;
  show.title = `On ${plural(nodes, "node")}`;
  const [swatch, text] = show.children;
  swatch.className = `map-swatch map-of-${hue} map-fill-${shade}`;
  put(swatch, String(group));
  put(text, words);
}

/** All about the GPU that is pointed at, or chosen. */
export function makeDetails(change) {
  const [title, body] = [el("h2"), el("div")];
  const find = el("input", { type: "number", min: 0, inputmode: "numeric", placeholder: "rank", "aria-label": "Choose a rank", on: {
    change: () => change({ rank: /^\d+$/.test(find.value) ? Number(find.value) : null }),
  } });
  const clear = button("Clear", () => { change({ rank: null }); find.focus(); });
  const element = el("section", { class: "map-panel map-details", "aria-label": "GPU" }, title, body, el("div", { class: "tool-actions map-pages" }, find, clear));
  const line = (term, text) => [el("dt", {}, term), el("dd", {}, text)];
  function update(parallel, rank, names, pinned) {
    clear.hidden = pinned === null;
    if (find !== document.activeElement) find.value = pinned ?? "";
    find.max = parallel.world_size - 1;
    if (rank === null) {
      title.textContent = "No GPU chosen";
      body.replaceChildren(el("p", { class: "map-hint" }, "Point at a GPU, tap it, or move to it with the arrow keys."));
      return;
    }
    const facts = rankFacts(parallel, rank, names);
    title.textContent = `Rank ${rank}${rank === pinned ? "" : " (not chosen)"}`;
    body.replaceChildren(
      el("dl", { class: "map-facts" }, line("Node", `${facts.node}, GPU ${facts.local} of it`), line("Dense", pointInWords(facts.dense)),
        facts.expert ? line("Expert", pointInWords(facts.expert)) : []),
      el("ul", { class: "map-groups" }, facts.groups.map(({ name, label, hue, group, members, nodes, place, size }) =>
        el("li", {}, button(`${label} ${group}`, () => change({ show: name, group }), { class: `tool-button map-tag map-hue-${name}`, title: `Isolate ${label} group ${group}`, "data-hue": hue }),
          el("span", {}, size === 1 ? "alone" : `${ranksInWords(members, 5)}`, el("small", {}, size === 1 ? "" : ` ${place + 1}${suffix(place + 1)} of ${size}, ${plural(nodes, "node")}`))))));
  }
  return { element, update };
}

const suffix = (n) => (n % 100 > 10 && n % 100 < 14 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th"));

const COLUMNS = [["Groups of", ""], ["Grid", ""], ["Groups", "num"], ["GPUs each", "num"], ["Stride", "num"], ["Nodes each", "num"], ["Links used", ""], ["Inside nodes", "num"], ["Between nodes", "num"]];

/** Per communicator: groups, sizes, nodes, links. */
export function makeTable(change) {
  const body = el("tbody");
  const rows = new Map(); // communicator → its row, made when first shown
  const table = el("table", { class: "tool-table map-table" }, el("caption", { class: "tool-live" }, "Communicators and the links between neighbours of their rings"),
    el("thead", {}, el("tr", {}, COLUMNS.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text)))), body);
  const share = (part, all) => (all ? `${Math.round((1000 * part) / all) / 10} %` : "–");
  const made = (name) => {
    if (!rows.has(name)) {
      rows.set(name, el("tr", { "data-name": name }, el("th", { scope: "row" },
        button(labelOf(name), () => change({ show: name, group: null }), { class: `tool-button map-tag map-hue-${name}`, title: NAMES[name] })),
      COLUMNS.slice(1).map(([, kind]) => el("td", { class: kind || null }))));
    }
    return rows.get(name);
  };
  function update(parallel, show) {
    const shown = communicatorRows(parallel, showsOf(parallel)).map((row) => {
      const links = row.intra_node_links + row.inter_node_links;
      const cells = [row.grid, row.group_count.toLocaleString("en"), row.size.toLocaleString("en"), row.size === 1 || row.stride === null ? "–" : row.stride.toLocaleString("en"),
        row.nodes, row.level, share(row.intra_node_links, links), share(row.inter_node_links, links)];
      const element = made(row.name);
      element.classList.toggle("is-shown", row.name === show);
      cells.forEach((text, at) => put(element.children[at + 1], text));
      return element;
    });
    if (shown.length !== body.children.length || shown.some((row, at) => row !== body.children[at])) body.replaceChildren(...shown);
  }
  return { element: el("div", { class: "tool-scroll", tabindex: 0, role: "region", "aria-label": "Table of communicators" }, table), update };
}

// Text that is the same already is left alone: a change costs a layout.
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
