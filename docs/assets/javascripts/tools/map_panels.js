// The panels next to the rank map's picture: the choice of communicator, the legend by group, and
// everything about one GPU.

import { grouped } from "../engine/errors.js";
import { button, el } from "./dom.js";
import {
  labelOf,
  legendOf,
  plural,
  pointInWords,
  rankFacts,
  ranksInWords,
} from "./map_groups.js";
import { NAMES, put } from "./map_table.js";
import { showsOf } from "./map_state.js";

const PAGE = 8; // groups of the legend at a time
const ALL = 512; // … if all are requested

/** Buttons that choose what colors the GPUs. */
export function makeShows(change) {
  const element = el("div", {
    class: "map-shows tool-actions",
    role: "group",
    "aria-label": "Color by groups of",
  });
  let names = "";
  function update({ show }, parallel) {
    const offered = showsOf(parallel);
    if (names !== offered.join()) {
      names = offered.join();
      element.replaceChildren(
        ...offered.map((name) =>
          button(name === "none" ? "None" : labelOf(name), () => change({ show: name, group: null }), {
            "data-show": name,
            title: NAMES[name],
            class: `tool-button map-hue-${name}`,
          }),
        ),
      );
    }
    for (const one of element.children)
      one.setAttribute("aria-pressed", String(one.dataset.show === show));
  }
  return { element, update };
}

/** Groups of the chosen communicator, a page at a time; a click isolates one. */
export function makeLegend(change) {
  const [title, list] = [el("h2"), el("ul", { class: "map-legend" })];
  const pages = el("div", { class: "tool-actions map-pages" });
  const element = el("section", { class: "map-panel", "aria-label": "Groups" }, title, list, pages);
  let [from, last, whole] = [0, null, false];
  const entry = () => {
    const show = button(
      "",
      () => change({ group: show.ariaPressed === "true" ? null : Number(show.dataset.group) }),
      { class: "map-entry" },
    );
    const unseen = (text) => el("span", { class: "tool-live" }, text);
    show.append(unseen("Group "), el("span"), unseen(", ranks "), el("span"));
    return show;
  };
  function update(state, parallel, view) {
    element.hidden = !view;
    if (!view) return;
    if (last?.view !== view) from = 0;
    if (state.group !== null && (last?.group !== state.group || last?.view !== view))
      from = state.group - (state.group % PAGE);
    last = { view, group: state.group };
    title.textContent = `${labelOf(view.name)}: ${plural(view.count, "group")} of ${grouped(view.size)}`;
    list.classList.toggle("is-whole", whole);
    const entries = legendOf(parallel, view, whole ? 0 : from, whole ? ALL : PAGE);
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
    const next = button("›", turn(PAGE), {
      "aria-label": "Groups after",
      disabled: from + PAGE >= view.count,
    });
    const both = button(whole ? "Fewer" : `All ${grouped(view.count)}`, () => {
      whole = !whole;
      update(state, parallel, view);
      pages.querySelector("[data-whole]").focus();
    });
    both.dataset.whole = "";
    const to = el("input", {
      type: "number",
      min: 0,
      max: view.count - 1,
      "aria-label": "Isolate group number",
      placeholder: "group",
      inputmode: "numeric",
      value: state.group ?? "",
      on: { change: () => change({ group: /^\d+$/.test(to.value) ? Number(to.value) : null }) },
    });
    pages.replaceChildren(
      ...(view.count > PAGE && !whole ? [back, next, to] : []),
      ...(view.count > PAGE && view.count <= ALL ? [both] : []),
      ...(state.group !== null
        ? [
            button("Show all", () => {
              change({ group: null });
              list.querySelector("button").focus();
            }),
          ]
        : []),
    );
    pages.hidden = !pages.children.length;
  }
  return { element, update };
}

function fill(show, { group, shade, words, nodes }, hue, isolated) {
  show.ariaPressed = String(isolated === group);
  show.dataset.group = group;
  show.title = `On ${plural(nodes, "node")}`;
  const [, swatch, , text] = show.children;
  swatch.className = `map-swatch map-of-${hue} map-fill-${shade}`;
  put(swatch, String(group));
  put(text, words);
}

/** Everything about the GPU that is pointed at or chosen. */
export function makeDetails(change) {
  const [title, body] = [el("h2"), el("div")];
  const find = el("input", {
    type: "number",
    min: 0,
    inputmode: "numeric",
    placeholder: "rank",
    "aria-label": "Choose a rank",
    on: {
      change: () => change({ rank: /^\d+$/.test(find.value) ? Number(find.value) : null }),
    },
  });
  const clear = button("Clear", () => {
    change({ rank: null });
    find.focus();
  });
  const element = el(
    "section",
    { class: "map-panel map-details", "aria-label": "GPU" },
    title,
    body,
    el("div", { class: "tool-actions map-pages" }, find, clear),
  );
  const line = (term, text) => [el("dt", {}, term), el("dd", {}, text)];
  function update(parallel, rank, names, pinned) {
    clear.hidden = pinned === null;
    if (find !== document.activeElement) find.value = pinned ?? "";
    find.max = parallel.world_size - 1;
    if (rank === null) {
      title.textContent = "No GPU chosen";
      body.replaceChildren(
        el("p", { class: "map-hint" }, "Point at a GPU, tap it, or move to it with the arrow keys."),
      );
      return;
    }
    const facts = rankFacts(parallel, rank, names);
    const alone = facts.groups.filter(({ size }) => size === 1).map(({ label }) => label);
    title.textContent = `Rank ${rank}${rank === pinned ? "" : " (not chosen)"}`;
    body.replaceChildren(
      el(
        "dl",
        { class: "map-facts" },
        line("Node", `${facts.node}, GPU ${facts.local} of it`),
        line("Dense", pointInWords(facts.dense)),
        facts.expert ? line("Expert", pointInWords(facts.expert)) : [],
        alone.length ? line("Alone in", alone.join(", ")) : [],
      ),
      el(
        "ul",
        { class: "map-groups" },
        facts.groups.filter(({ size }) => size > 1).map(({ name, label, hue, group, members, nodes, place, size }) =>
          el(
            "li",
            {},
            button(`${label} ${group}`, () => change({ show: name, group }), {
              class: `tool-button map-tag map-hue-${name}`,
              title: `Isolate ${label} group ${group}`,
              "data-hue": hue,
            }),
            el(
              "span",
              {},
              ranksInWords(members, 5),
              el("small", {}, ` ${place + 1}${suffix(place + 1)} of ${size}, ${plural(nodes, "node")}; next is ${members[(place + 1) % size]}`),
            ),
          ),
        ),
      ),
    );
  }
  return { element, update };
}

const suffix = (n) =>
  n % 100 > 10 && n % 100 < 14 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th");
