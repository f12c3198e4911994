// Figures are complete without this script. It opens one in Plotly when a reader asks ("Explore"),
// follows the palette, steps through traces by buttons and arrow keys, lets the keyboard reach what
// scrolls sideways, and loads the scripts of link previews and of the search.

const library = new URL("plotly.min.js", import.meta.url);
const open = new Map(); // plot element → its figure as published
const buttons = { bgcolor: "transparent", color: "var(--fig-muted)", activecolor: "var(--fig-ink)" };
let loading;

function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = library;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = undefined;
      script.remove();
      reject(new Error(`cannot load ${library}`));
    };
    document.head.append(script);
  });
  return loading;
}

// Colors are published as var(--fig-role); Plotly needs them as they are now.
function inked(value, style) {
  if (typeof value === "string") {
    const role = /^var\((--[\w-]+)\)$/.exec(value);
    return role ? style.getPropertyValue(role[1]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((item) => inked(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inked(item, style)]));
  }
  return value;
}

async function paint(element) {
  const library = await plotly();
  const figure = open.get(element);
  if (!figure) return;
  const style = getComputedStyle(document.body);
  const { data, layout, config, frames } = inked(figure, style);
  const modebar = inked(buttons, style);
  await library.react(element, {
    data, frames, layout: { modebar, ...layout }, config: { ...config, responsive: true },
  });
}

function close(element) {
  open.delete(element);
  window.Plotly?.purge(element);
  element.remove();
}

async function explore(button) {
  if (button.ariaBusy === "true") return; // not disabled, which would lose the keyboard's focus
  const panel = button.closest(".fig-panel") ?? button.closest("figure");
  const still = panel.querySelector(".fig-scroll");
  const shown = panel.querySelector(".fig-plot");
  if (shown) {
    panel.querySelector(".fig-parameters")?.remove();
    close(shown);
    still.hidden = false;
    button.textContent = "Explore";
    return;
  }
  const element = document.createElement("div");
  element.className = "fig-plot";
  element.role = "group";
  element.ariaLabel = `${still.ariaLabel}, interactive`;
  button.ariaBusy = "true";
  button.textContent = "Loading …";
  try {
    const answer = await fetch(new URL(button.dataset.plotly, document.baseURI));
    if (!answer.ok) throw new Error(`${answer.status} for ${button.dataset.plotly}`);
    const figure = await answer.json();
    open.set(element, figure);
    still.before(element);
    await paint(element);
    still.hidden = true;
    button.textContent = "Back to the figure";
    // The plot can be closed before its controls are loaded.
    if (figure.parameters) recompute(figure, element).catch(console.warn);
  } catch (error) {
    close(element);
    button.textContent = "Explore (could not be loaded, try again)";
    console.warn(error);
  } finally {
    button.ariaBusy = "false";
    tidy(); // the reader may have left the page meanwhile
  }
}

// Controls for the figure's own parameters: the site's script recomputes it for other values.
async function recompute(figure, element) {
  const { begin } = await import("./tools/explore.js");
  const form = await begin(figure, ({ data, layout }) => {
    open.set(element, { ...figure, data, layout: { ...layout, template: figure.layout.template } });
    paint(element);
  });
  if (open.has(element)) element.before(form);
}

function tidy() {
  for (const element of open.keys()) if (!element.isConnected) close(element);
}

// One frame of a trace at a time: `way` is 1, -1, or 0 for all of them again.
function step(box, way) {
  const frames = [...box.querySelectorAll(".frame")];
  const at = frames.findIndex((frame) => frame.classList.contains("is-current"));
  const next = way ? Math.min(frames.length - 1, Math.max(0, at + way)) : -1;
  frames.forEach((frame, index) => {
    frame.classList.toggle("is-current", index === next);
    frame.classList.toggle("is-dimmed", next >= 0 && index !== next);
  });
  frames[next]?.scrollIntoView({ block: "nearest", inline: "center" });
  const told = frames[next]?.querySelector("text")?.textContent ?? "all steps";
  const tools = box.closest(".fig-picture")?.nextElementSibling;
  const output = tools?.querySelector(".fig-stepper output");
  if (output) output.value = told;
}

function stepper(box) {
  const tools = box.closest(".fig-picture")?.nextElementSibling;
  if (!tools || tools.querySelector(".fig-stepper")) return;
  box.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowLeft: -1, Escape: 0 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    step(box, way);
  });
  const group = document.createElement("span");
  group.className = "fig-stepper";
  group.role = "group";
  group.ariaLabel = "Steps";
  const button = (text, label, way) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "fig-button";
    made.textContent = text;
    made.ariaLabel = label;
    made.addEventListener("click", () => step(box, way));
    return made;
  };
  const output = document.createElement("output");
  output.value = "all steps";
  group.append(
    button("‹", "Previous step", -1), output, button("›", "Next step", 1), button("all", "All steps", 0),
  );
  tools.prepend(group);
}

// Not every browser lets the keyboard scroll a box without a focusable element.
const scrolled = new ResizeObserver((boxes) => {
  // All are measured before any is changed, so that the page is laid out once.
  const wide = new Set(boxes.filter(({ target }) => target.scrollWidth > target.clientWidth));
  for (const box of boxes) {
    if (wide.has(box)) box.target.tabIndex = 0;
    else box.target.removeAttribute("tabindex");
  }
});

// Films load when a reader comes near.
const films = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    films.unobserve(target);
    import("./player.js").then(({ mount }) => mount(target)).catch(console.warn);
  }
}, { rootMargin: "400px" });

// The address of one configuration of a figure, `#fig-name-preset`, opens its tab.
function openTab() {
  const name = location.hash.slice(1);
  if (!/^fig-[\w-]+$/.test(name) || document.getElementById(name)) return;
  const panel = document.querySelector(`a[download][href$="/${name}.svg"]`)?.closest(".fig-panel");
  const figure = panel?.closest("figure");
  const place = [...figure?.querySelectorAll(":scope > .fig-panel") ?? []].indexOf(panel);
  const tab = figure?.querySelector(`:scope > .fig-tabs input.fig-tab-${place + 1}`);
  if (!tab) return;
  tab.checked = true;
  figure.scrollIntoView();
}
addEventListener("hashchange", openTab);

function begin() {
  entered = false;
  tidy();
  openTab();
  films.disconnect();
  document.querySelectorAll("[data-film]").forEach((picture) => films.observe(picture));
  scrolled.disconnect();
  document.querySelectorAll("div.fig-math, .md-typeset__scrollwrap").forEach((box) => scrolled.observe(box));
  for (const button of document.querySelectorAll(".fig-explore[hidden]")) {
    button.hidden = false;
    button.addEventListener("click", () => explore(button));
  }
  document.querySelectorAll(".fig-scroll:has(.frame)").forEach(stepper);
  const tables = document.querySelectorAll("table.sortable");
  const here = document.querySelector(".find-here:empty");
  if (here) search().then(({ settle }) => settle(here));
  if (tables.length) import("./tables.js").then(({ enhance }) => tables.forEach(enhance));
}

// A long table loads when its box is opened; its link leads to a page with it.
document.addEventListener("toggle", async ({ target }) => {
  if (target.open && target.matches(".fig-tools > details")) {
    import("./take.js").then(({ offer }) => offer(target, library, inked)).catch(console.warn);
  }
  const link = target.open && target.querySelector("a.fig-late");
  if (!link || link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  try {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(`${answer.status} for ${link.href}`);
    const { body } = new DOMParser().parseFromString(await answer.text(), "text/html");
    link.replaceWith(...body.querySelectorAll("table, table ~ p"));
  } catch (error) {
    link.ariaBusy = "false";
    console.warn(error);
  }
}, true);

// The search is a page for readers without scripts; others get it over this one, and only then loaded.
const search = () => import("./search/view.js");
// A field keeps the focus until the next frame when the dialog around it is closed.
const writing = (element) => (element.checkVisibility?.() ?? true)
  && (element.isContentEditable || /^(?:input|select|textarea)$/i.test(element.localName));

let early; // what is typed while the search is loading
let entered; // whether Enter came last, and the reader has not left since
function openSearch() {
  early = "";
  entered = false;
  search().then(({ open }) => early === undefined || open(early, entered)).finally(() => { early = undefined; });
}

addEventListener("click", (event) => {
  entered = false;
  const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button);
  if (!plain || !event.target.closest?.(".find-open")) return;
  event.preventDefault();
  event.stopPropagation(); // the theme would go to the page
  openSearch();
}, true);
addEventListener("keydown", (event) => {
  const { key } = event;
  const loads = early !== undefined;
  if (key !== "Enter") entered = false;
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (loads && key === "Escape") early = undefined;
  else if (loads && key === "Backspace") early = early.slice(0, -1);
  else if (loads && key === "Enter") entered = true;
  else if (key.length > 1) return;
  else if (loads) early += key;
  else if (!"/fs".includes(key) || writing(event.target) || document.querySelector("dialog[open]")) return;
  else if (!document.querySelector(".find-open")) return;
  else openSearch();
  event.preventDefault();
  event.stopPropagation(); // the theme has keys of its own
}, true);
for (const kind of ["pointerover", "focusin"]) {
  addEventListener(kind, ({ target }) => {
    if (target.closest?.(".find-open")) search().then(({ begin }) => begin()).catch(() => {});
  });
}

// A field below a question gets its script when a reader enters it.
for (const kind of ["focusin", "submit"]) {
  addEventListener(kind, (event) => {
    const form = event.target.closest?.("form[data-script]");
    if (!form) return;
    if (kind === "submit") event.preventDefault();
    import(new URL(form.dataset.script, document.baseURI)).then(({ begin }) => begin(form, event)).catch(console.warn);
  });
}

// Links to a place show a preview of it.
for (const kind of ["pointerover", "focusin"]) {
  addEventListener(kind, (event) => {
    const link = event.target.closest?.("a[href*='#']");
    if (link) import("./preview.js").then(({ near }) => near(link, event)).catch(console.warn);
  });
}

// Material replaces the page's content on instant navigation and says so through document$.
if (window.document$) window.document$.subscribe(begin);
else begin();
// Plots that are still loading have the previous colors.
new MutationObserver(() => window.Plotly && [...open.keys()].forEach(paint)).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
});
