// Previews what a link refers to: a figure, a term, an equation, a run, a section. Links work
// without it. It is loaded when a pointer or the keyboard first reaches a link to a place.

const REST_MS = 40, LEAVE_MS = 200, KEPT_PAGES = 8, ENOUGH = 500;
const UNSHOWN = ".headerlink, .row-link, .fig-tools, .fig-tabs, .fig-controls, .fig-stepper, .fig-print, [popover], script, style, input";
const OF_ITSELF = ".headerlink, .row-link, .fig-number, .md-nav a, nav a, .toc a, .fig-tools a, .fig-preview a";
const pages = new Map(); // address → promise of its document
let box, shown, wanted, timer;

function page(address) {
  if (address === location.href.replace(/#.*/, "")) return document;
  if (!pages.has(address)) {
    if (pages.size >= KEPT_PAGES) pages.delete(pages.keys().next().value);
    pages.set(address, fetch(address).then(async (answer) => {
      if (!answer.ok) throw new Error(`${answer.status} for ${address}`);
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    }).catch((error) => {
      pages.delete(address);
      throw error;
    }));
  }
  return pages.get(address);
}

const made = (name, ...content) => {
  const element = document.createElement(name);
  element.append(...content);
  return element;
};

// A copy to look at: without buttons, links and ids, except the ids that a drawing refers to.
function still(element) {
  const copy = document.importNode(element, true);
  copy.querySelectorAll(UNSHOWN).forEach((part) => part.remove());
  copy.querySelectorAll("a[href], button").forEach((part) => part.replaceWith(...part.childNodes));
  for (const part of [copy, ...copy.querySelectorAll("[id], [tabindex]")]) {
    if (!part.closest("svg")) part.removeAttribute("id");
    part.removeAttribute("tabindex");
  }
  return copy;
}

function ofFigure(figure) {
  const panel = figure.querySelector(":scope > .fig-panel") ?? figure;
  const picture = panel.querySelector(".fig-picture, .fig-scroll"), caption = figure.querySelector("figcaption");
  const parts = [picture, caption].filter(Boolean).map(still);
  parts.at(-1).querySelectorAll?.(".fig-panel ~ .fig-panel").forEach((other) => other.remove());
  return parts;
}

// A row of a table, with its headings.
function ofRow(row) {
  const heads = [...row.closest("table").querySelectorAll("thead tr:last-child > *")];
  const list = made("dl");
  [...row.cells].forEach((cell, at) => {
    const value = still(cell).textContent.trim();
    if (value) list.append(made("dt", heads[at]?.textContent.trim() ?? ""), made("dd", value));
  });
  return [list];
}

function ofHeading(heading) {
  const parts = [made("strong", still(heading).textContent)];
  let length = 0;
  for (let next = heading.nextElementSibling; next && length < ENOUGH; next = next.nextElementSibling) {
    if (/^h[1-6]$/i.test(next.localName)) break;
    if (next.matches("details, pre, script, [popover]")) continue;
    parts.push(...next.matches("figure.figgen") ? ofFigure(next) : [still(next)]);
    length += next.matches("figure.figgen") ? ENOUGH : next.textContent.length;
  }
  return parts;
}

// A meaning without the text of its link to a page that says more.
function saying(element) {
  const copy = still(element);
  if (copy.lastChild?.textContent === "More") copy.lastChild.remove();
  return [...copy.childNodes];
}

function contentOf(target) {
  const place = target.closest("figure.figgen, tr, dt, dd, li, h1, h2, h3, h4, h5, h6, p") ?? target;
  if (place.matches("figure")) return ofFigure(place);
  if (place.matches("tr")) return ofRow(place);
  if (place.matches("dt")) {
    return [made("strong", place.textContent), made("p", ...saying(place.nextElementSibling ?? place))];
  }
  if (/^h[1-6]$/i.test(place.localName)) return ofHeading(place);
  return saying(place);
}

// The target is already in view; a preview would only hide something else.
function inSight(target) {
  if (!target.isConnected || target.ownerDocument !== document) return false;
  const { top, bottom, height } = (target.closest("figure, tr, dt, li") ?? target).getBoundingClientRect();
  return height > 0 && top >= 0 && bottom <= innerHeight;
}

function place(link) {
  const at = link.getClientRects()[0] ?? link.getBoundingClientRect();
  const gap = 6, { offsetWidth: width, offsetHeight: height } = box;
  const below = at.bottom + gap + height <= innerHeight || at.top < innerHeight / 2;
  box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  box.style.top = below ? `${at.bottom + gap}px` : `${Math.max(8, at.top - gap - height)}px`;
  box.style.maxHeight = `${below ? innerHeight - at.bottom - gap - 8 : at.top - gap - 8}px`;
}

function hide() {
  clearTimeout(timer);
  wanted = undefined;
  if (!shown) return;
  shown.removeAttribute("aria-describedby");
  shown = undefined;
  if (box.matches(":popover-open")) box.hidePopover();
}
const leave = () => {
  clearTimeout(timer);
  timer = setTimeout(hide, LEAVE_MS);
};

function boxOf() {
  if (box?.isConnected) return box;
  box = made("div");
  Object.assign(box, { className: "fig-preview md-typeset", id: "fig-preview", role: "tooltip", popover: "manual" });
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", leave);
  document.body.append(box);
  return box;
}

async function show(link, loading) {
  const { hash } = new URL(link.href, document.baseURI);
  const source = await loading;
  const target = source.getElementById(decodeURIComponent(hash.slice(1)));
  if (wanted !== link || !target || inSight(target) || !link.isConnected) return;
  boxOf().replaceChildren(...contentOf(target));
  if (shown) shown.removeAttribute("aria-describedby");
  shown = link;
  link.setAttribute("aria-describedby", box.id);
  if (!box.matches(":popover-open")) box.showPopover();
  box.style.maxHeight = "";
  box.scrollTop = 0;
  place(link);
}

/** A pointer or the focus has reached a link: show its target, unless that is in view. */
export function near(link, event) {
  const address = new URL(link.href, document.baseURI);
  const pointer = event.type === "pointerover";
  if (pointer ? event.pointerType === "touch" : !link.matches(":focus-visible")) return;
  if (address.origin !== location.origin || !address.hash || link.matches(OF_ITSELF)) return;
  if (!link.closest("article, main, [role=main]")) return;
  clearTimeout(timer);
  link.addEventListener(pointer ? "pointerleave" : "blur", leave, { once: true });
  if (wanted === link) return;
  wanted = link;
  address.hash = "";
  const loading = Promise.resolve(page(address.href.replace(/#$/, "")));
  loading.catch(() => {});
  const wait = pointer ? REST_MS : 0;
  timer = setTimeout(() => show(link, loading).catch(console.warn), wait);
}

addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !shown) return;
  event.stopPropagation();
  hide();
}, true);
addEventListener("click", ({ target }) => box?.contains(target) || hide(), true);
