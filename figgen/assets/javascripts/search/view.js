// Shows what the search finds: in a dialog over any page, and on the search page itself.

import { begin, find, texts } from "./find.js";
import { stem, words } from "./words.js";

const site = new URL("../../../", import.meta.url);
const KINDS = { figure: "Figure", formula: "Formula", term: "Term", row: "Table row", section: "Section", page: "Page" };
const AROUND = 220; // characters of an excerpt
const EXCERPTS = 6;
const LONGEST = 200; // characters of a query; an address with more is cut, as the field shows
const PAUSE_MS = 250; // texts are loaded once typing pauses
let dialog;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// The search's own parts: a field, the message about the results, and their list.
function parts(query) {
  const input = make("input", {
    type: "search", name: "q", value: query.slice(0, LONGEST), maxLength: LONGEST, autocomplete: "off", spellcheck: false, enterKeyHint: "search",
    placeholder: "A word, a symbol, a formula, a GPU …", ariaLabel: "Search",
  });
  input.autocapitalize = "off";
  const told = make("p", { className: "find-told", role: "status" });
  const list = make("ol", { className: "find-list" });
  const form = make("form", { role: "search", className: "find-form", action: new URL("search/", site) }, input);
  return { input, told, list, form };
}

// Follows the typed text; `changed` is called for each query that is shown.
function follow(view, changed = () => {}) {
  let asked, shown; // a query, and the promise that its results are shown
  let pause;
  const resting = () => new Promise((resolve) => {
    clearTimeout(pause);
    pause = setTimeout(resolve, PAUSE_MS);
  });
  function show() {
    const query = view.input.value.trim();
    if (query !== asked) {
      asked = query;
      shown = showAnswer(query).catch((error) => failed(query, error));
    }
    return shown;
  }
  async function showAnswer(query) {
    if (!query) {
      view.list.replaceChildren();
      view.told.textContent = "";
      changed(query);
      return;
    }
    const answer = await find(view.input.value);
    if (query !== asked) return; // the reader typed on
    draw(view, query, answer);
    changed(query);
    resting().then(() => query === asked && excerpts(view, query, answer)).catch((error) => failed(query, error));
  }
  function failed(query, error) {
    if (query !== asked) return;
    asked = undefined;
    view.told.textContent = "The search could not be loaded; try again.";
    console.warn(error);
  }
  view.input.addEventListener("input", show);
  view.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = view.input.value.trim();
    await show();
    // A reader who has typed on, closed the search or left its page goes nowhere.
    if (query === asked && view.form.offsetParent) view.list.querySelector("a")?.click();
  });
  view.form.parentElement.addEventListener("keydown", (event) => move(view, event));
  return show();
}

// Up and down go through the results and back to the field.
function move(view, event) {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way) return;
  const stops = [view.input, ...view.list.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  stops[(at + way + stops.length) % stops.length].focus();
}

function draw(view, query, { results, missing, count: pages }) {
  const best = pages > results.length ? `The best ${results.length} of ` : "";
  const count = `${best}${pages || "No"} page${pages === 1 ? "" : "s"}`;
  const lost = missing.length ? `, nothing has ${missing.map((word) => `“${word}”`).join(", ")}` : "";
  view.told.textContent = `${count} for “${query}”${lost}.`;
  view.list.replaceChildren(...results.map(item));
}

function item({ title, sections }) {
  const [best, ...others] = sections;
  const where = best.kind === "page" ? "" : title;
  return make(
    "li", { className: "find-item" },
    make(
      "a", { href: new URL(best.url, site), className: "find-link" },
      make("span", { className: "find-kind", textContent: KINDS[best.kind] }),
      make("b", { textContent: best.title }),
      ...(where ? [make("span", { className: "find-where", textContent: where })] : []),
    ),
    make("p", { className: "find-text" }),
    ...(others.length ? [make("p", { className: "find-more" }, ...others.map(further))] : []),
  );
}

function further({ kind, url, title }) {
  const text = kind === "page" ? `${title} (top of page)` : title;
  return make("a", { href: new URL(url, site), textContent: text });
}

async function excerpts(view, query, { results }) {
  const meant = new Set(words(query));
  const places = [...view.list.querySelectorAll(".find-text")];
  await Promise.all(results.slice(0, EXCERPTS).map(async ({ page, sections: [best] }, at) => {
    const text = (await texts(page))[best.place] ?? "";
    places[at].replaceChildren(...marked(text, meant));
  }));
}

// The part of a text with most of the query's words, which are marked.
function marked(text, meant) {
  const found = [...text.matchAll(/[\p{L}\p{N}][\p{L}\p{N}'’_-]*/gu)].filter(([word]) => hits(word, meant));
  const within = (from) => new Set(
    found.filter(({ index }) => index >= from && index < from + AROUND).map(([word]) => stem(word.toLowerCase())),
  ).size;
  const first = found.map(({ index }) => index).reduce((a, b) => (within(b) > within(a) ? b : a), found[0]?.index ?? 0);
  const from = first < 60 ? 0 : text.indexOf(" ", first - 50) + 1;
  const to = from + AROUND >= text.length ? text.length : text.lastIndexOf(" ", from + AROUND);
  const shown = [from > 0 ? "… " : ""];
  let at = from;
  for (const { 0: word, index } of found) {
    if (index < from || index + word.length > to) continue;
    shown.push(text.slice(at, index), make("mark", { textContent: word }));
    at = index + word.length;
  }
  return [...shown, text.slice(at, to), to < text.length ? " …" : ""];
}

const hits = (word, meant) => words(word).some((each) => meant.has(each)) || meant.has(stem(word.toLowerCase()));

// Opens the dialog with the text typed while it loaded, and presses Enter if that was `entered` last.
export function open(typed = "", entered = false) {
  if (!dialog?.isConnected) {
    const view = parts("");
    const close = make("button", { type: "button", className: "find-close", textContent: "Close" });
    view.form.append(close);
    dialog = make("dialog", { className: "find", ariaLabel: "Search" }, view.form, view.told, view.list);
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => {
      // The background counts as the dialog itself; a link closes it.
      if (event.target === dialog || event.target.closest("a")) dialog.close();
    });
    document.body.append(dialog);
    follow(view);
  }
  if (!dialog.open) dialog.showModal();
  const input = dialog.querySelector("input");
  input.focus();
  input.select();
  if (!typed) return;
  input.value = typed;
  input.dispatchEvent(new Event("input"));
  if (entered) dialog.querySelector("form").requestSubmit();
}

// Makes the search page's form answer while typing; content for readers without scripts gives way to results.
export function settle(place) {
  const query = new URL(location).searchParams.get("q") ?? "";
  const view = parts(query);
  place.replaceChildren(view.form, view.told, view.list);
  const register = document.querySelectorAll(".find-here ~ *");
  follow(view, (text) => {
    if (!place.isConnected) return; // the address is another page's by now
    for (const part of register) part.hidden = Boolean(text);
    const url = new URL(location);
    if (text) url.searchParams.set("q", text);
    else url.searchParams.delete("q");
    history.replaceState(history.state, "", url);
  });
  if (!location.hash) view.input.focus({ preventScroll: true });
}

export { begin };
