// What the tools need from the document: elements made from text, never from markup; one frame per
// change; announcements for screen readers; downloads; and a lifetime that ends with the page.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `given` has attributes; `class`; `on`, an object of listeners; and properties, which
 * are the names in `PROPERTIES`. null and false omit an attribute. Children are nodes or text.
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

/** A labeled control: `control` gets the id, and the hint below it becomes its description. */
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

/** A region that screen readers announce when it changes; `say` waits until the reader pauses. */
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

// A press counts only if it ends on the element on which it began.
const PRESSED = "button, a, summary, label, input:is([type=checkbox], [type=radio])";
const LONGEST_MS = 5000; // for a release that never comes
const TAP_MS = 50; // from the release of a finger to its click
let pressed = Promise.resolve();
addEventListener("pointerdown", ({ button, target }) => {
  if (button !== 0 || !target.closest?.(PRESSED)) return;
  pressed = new Promise((go) => {
    const after = (kind, wait) =>
      addEventListener(kind, (event) => setTimeout(go, wait(event)), { capture: true, once: true });
    after("pointerup", ({ pointerType }) => (pointerType === "mouse" ? 0 : TAP_MS));
    after("pointercancel", () => 0);
    after("click", () => 0);
    setTimeout(go, LONGEST_MS);
  });
}, true);

/**
 * Resolves when no button is being pressed. Code that moves or replaces a part of the page without the
 * reader's action waits for this: a button that moves between press and release is not clicked.
 */
export const released = () => pressed;

/** Runs `work` at most once per frame, with the arguments of the last call, and not during a press. */
export function perFrame(work) {
  let [waiting, last] = [0, []];
  return (...given) => {
    last = given;
    waiting ||= requestAnimationFrame(async () => {
      await released();
      waiting = 0;
      work(...last);
    });
  };
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

/**
 * Yields to other tasks and to a press; if `signal` says that the reader has left, what waits for it
 * ends there.
 */
export const pause = (signal) =>
  new Promise((go) => setTimeout(() => released().then(() => signal.aborted || go())));

/**
 * Runs `build(root, signal, data)` on every page that has an element matching `selector`, now and
 * after each instant navigation; `data` is stored in the page, and `signal` is aborted when
 * the reader leaves. A tool that takes long to build may return a promise.
 */
export function mountTool(selector, build) {
  let leave = null;
  const begin = async (again) => {
    const root = document.querySelector(selector);
    if (leave?.root === root && again !== true) return;
    leave?.abort();
    leave = null;
    if (!root) return;
    leave = Object.assign(new AbortController(), { root });
    let [moved, acted, follow] = [false, again === true, null];
    const { signal } = leave;
    // What Back needs is loaded with the reader's first action, once the tool is built.
    const act = () => { acted = true; follow?.(); };
    for (const type of ["pointermove", "keydown", "focusin", "scroll"]) addEventListener(type, act, { once: true, passive: true, signal });
    for (const type of ["wheel", "keydown", "pointerdown"]) {
      addEventListener(type, () => { moved = true; }, { once: true, passive: true, signal });
    }
    try {
      const brought = document.querySelector("template.tool-data").content.textContent;
      await build(root, signal, JSON.parse(brought));
      follow = () => {
        follow = null;
        import("./back.js").then(({ undoByBack }) => signal.aborted || undoByBack(signal, () => begin(true)));
      };
      if (acted) follow();
      // The browser may have scrolled to the address's section before the tool took its space.
      if (!moved && again !== true) document.querySelector(":target")?.scrollIntoView();
    } catch (error) {
      const told = "The tool could not be loaded; reload the page to try again.";
      root.replaceChildren(el("p", { class: "tool-message is-bad" }, told));
      console.warn(error);
    }
  };
  begin();
  // Material replaces the page's content on instant navigation and announces it through document$; this
  // script may run before the theme's.
  const follow = () => window.document$?.subscribe(begin);
  if (window.document$) follow();
  else addEventListener("load", follow, { once: true });
}
