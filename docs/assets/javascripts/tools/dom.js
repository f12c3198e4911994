// What the tools need of the document: elements made of text, never of markup; one frame per
// change; a voice for screen readers; files to take away; a life that ends with the page.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `given` holds attributes; `class`; `on`, an object of listeners; and properties, that
 * is names of `PROPERTIES`. null and false leave an attribute out. Children are nodes or text.
 */
export const el = (tag, given = {}, ...children) => built(document.createElement(tag), given, children);

/** The same for elements of a drawing. */
export const svgEl = (tag, given = {}, ...children) =>
  built(document.createElementNS(SVG, tag), given, children);

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "textContent", "indeterminate"]);

function built(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    } else if (PROPERTIES.has(name)) element[name] = value;
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  // Strings become text nodes: data is never read as markup.
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A labelled control: `control` gets the id, the hint below it is its description. */
export function field(label, control, hint = null) {
  control.id ||= `tool-${++made}`;
  const note = hint === null ? null : el("small", { id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "tool-field" }, el("label", { for: control.id }, label), control, note);
}
let made = 0;

/** A choice from a list of [value, label] pairs, or of groups [title, pairs]. */
export function selectField(label, { name, value, options, hint = null, onChange }) {
  const option = ([key, text]) => el("option", { value: key }, text);
  const select = el(
    "select",
    { name, on: { change: () => onChange(select.value, select) } },
    options.map(([key, text]) =>
      Array.isArray(text) ? el("optgroup", { label: key }, text.map(option)) : option([key, text]),
    ),
  );
  select.value = value;
  return { box: field(label, select, hint), select };
}

export const button = (text, onClick, given = {}) =>
  el("button", { type: "button", class: "tool-button", ...given, on: { click: onClick } }, text);

/** A region that is read out when it changes; `say` waits until the reader pauses. */
export function liveRegion() {
  const region = el("p", { class: "tool-live", role: "status", "aria-live": "polite" });
  let waiting = 0;
  const say = (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      region.textContent = text;
    }, 150);
  };
  return { region, say };
}

/** `work` at most once per frame, with the arguments of the last call. */
export function perFrame(work) {
  let [waiting, last] = [0, []];
  return (...given) => {
    last = given;
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      work(...last);
    });
  };
}

let pressed = false;
const waiting = [];
addEventListener("pointerdown", ({ button, target }) => {
  pressed = button === 0 && Boolean(target.closest?.("button, a, summary"));
}, true);
for (const end of ["pointerup", "pointercancel"])
  addEventListener(end, () => setTimeout(() => {
    pressed = false;
    for (const go of waiting.splice(0)) go();
  }), true);

/**
 * Resolves once no button is pressed. What comes late waits for it before it takes its place: a
 * button that moves away between press and release is not clicked, and its work is lost.
 */
export const released = () => (pressed ? new Promise((go) => waiting.push(go)) : Promise.resolve());

/**
 * Puts `made` where `old` was, and scrolls by as much as that moves the visible part of the page below
 * `section`: a button there stays under the pointer that is about to press it.
 */
export function replaceLate(section, old, made) {
  const below = section.nextElementSibling;
  const top = below.getBoundingClientRect().top;
  old.replaceWith(made);
  const moved = below.getBoundingClientRect().top - top;
  if (moved && top < innerHeight) scrollBy({ top: moved, behavior: "instant" });
}

/** Observes elements, and calls `come` once a reader comes near one of them. */
export function whenNear(come, signal, rootMargin = "0px") {
  const comer = new IntersectionObserver((seen) => {
    if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
    comer.disconnect();
    come();
  }, { rootMargin });
  signal.addEventListener("abort", () => comer.disconnect());
  return comer;
}

/** Lets others have a turn; what waits for it ends there when `signal` says that the reader has left. */
export const pause = (signal) => new Promise((go) => setTimeout(() => signal.aborted || go()));

/**
 * Runs `build(root, signal, data)` on every page that has an element matching `selector`, now and
 * after each instant navigation; `data` is what the page brings along, and `signal` is aborted when
 * the reader leaves. A tool that takes long to build may return a promise.
 */
export function mountTool(selector, build) {
  let leave = null;
  const begin = async () => {
    const root = document.querySelector(selector);
    if (leave?.root === root) return;
    leave?.abort();
    leave = null;
    if (!root) return;
    leave = Object.assign(new AbortController(), { root });
    let moved = false;
    for (const type of ["wheel", "keydown", "pointerdown"]) {
      addEventListener(type, () => { moved = true; }, { once: true, passive: true, signal: leave.signal });
    }
    try {
      const brought = document.querySelector("template.tool-data").content.textContent;
      await build(root, leave.signal, JSON.parse(brought));
      // The browser may have been at the section that the address names before the tool made room.
      if (!moved) document.querySelector(":target")?.scrollIntoView();
    } catch (error) {
      const told = "The tool could not be loaded; reload the page to try again.";
      root.replaceChildren(el("p", { class: "tool-message is-bad" }, told));
      console.warn(error);
    }
  };
  begin();
  // Material replaces the page's content on instant navigation and says so through document$; this
  // script may be there before the theme's.
  const follow = () => window.document$?.subscribe(begin);
  if (window.document$) follow();
  else addEventListener("load", follow, { once: true });
}
