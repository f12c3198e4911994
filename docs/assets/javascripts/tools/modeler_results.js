// Everything that the modeler shows next to its form, and when each part is redrawn.

import { el, released, whenNear } from "./dom.js";
import { answer } from "./modeler_answer.js";
import { timeSection } from "./modeler_time.js";

// What is drawn below the screen, and computed in idle time.
let later = null;
async function loaded() {
  const below = await (later ??= import("./modeler_below.js"));
  await released();
  return below;
}

/**
 * Returns { answer, details, at(index), alone(), update(found, at, address) }; `alone` is whether the
 * first of two configurations is shown without the second, which cannot be computed.
 */
export function results({ signal, say, apply, choose, evaluate, catalog }) {
  const top = el("div", { class: "modeler-answer", role: "group", "aria-label": "Answer" });
  const details = el("div", { class: "modeler-details" });
  const section = (title, ...children) => {
    const body = el("div", { class: "modeler-body" }, children);
    const heading = el("h2", { tabindex: "-1" }, title);
    const which = el("p", { class: "modeler-of", hidden: true });
    const box = el("section", { class: "tool-section" }, heading, which, body);
    details.append(box);
    return { box, body, heading, which };
  };
  const side = section("Side by side");
  const time = section("Where the time goes");
  const change = section("What to change", waiting());
  const pipeline = section("Pipeline");
  const memory = section("Memory");
  const traffic = section("What a GPU sends");
  const links = section("Links: bandwidth needed");
  const units = section("What one more unit buys", waiting());
  const utilisation = section("Utilization");
  const away = section("Take away");
  away.heading.id = "launch";
  const alike = [change, pipeline, memory, traffic, links, units, utilisation, away];

  let [width, shown, last, take, taken, alone] = [0, null, null, null, null, false];
  // What variants add to the configuration's sections.
  let extras = {};
  // The subjects of numbers in recommendations and sensitivities, by name.
  let variants = {};
  // What is below the screen is drawn after the answer has been painted, one section at a time.
  let drawing = 0;
  const draw = () => {
    const [all, at] = shown;
    top.replaceChildren(...answer(all));
    side.box.hidden = all.length < 2;
    if (all.length > 1) compare(all);
    fill(time, timeSection(all, at, width, choose));
    for (const { which } of alike) {
      which.hidden = all.length < 2;
      which.textContent = `Configuration ${"AB"[at]}`;
    }
    if (!near) return;
    details.setAttribute("aria-busy", "true");
    const mine = ++drawing;
    afterPaint(async () => {
      const below = await loaded();
      explore ??= below.exploration({ signal, apply: applied, evaluate, catalog });
      drawRest(mine, [
        [pipeline, below.pipelineSection],
        [memory, below.memorySection],
        [traffic, below.trafficSection],
        [links, below.linksSection],
        [utilisation, below.utilisationSection],
      ]);
    });
  };
  const compare = async (all) => {
    const { comparison } = await import("./modeler_compare.js");
    await released();
    if (all === shown[0]) fill(side, comparison(all));
  };
  const drawRest = async (mine, [[where, what], ...others]) => {
    await released();
    if (mine !== drawing || signal.aborted) return;
    const [all, at] = shown;
    fill(where, what({ ...all[at], ...(keyNow() === last && extras) }, at, width));
    if (others.length) setTimeout(drawRest, 0, mine, others);
    else {
      details.removeAttribute("aria-busy");
      if (!take) reader.observe(away.box);
      tryOut(all[at], at);
    }
  };

  const keyNow = () => shown[1] + JSON.stringify(shown[0][shown[1]].state);
  // Variants are evaluated last, in idle time.
  let explore = null;
  const tryOut = (now, at) => {
    if (keyNow() === last) return;
    [last, extras] = [keyNow(), {}];
    for (const { body } of [change, units]) body.setAttribute("aria-busy", "true");
    explore(now, at, async ({ advice, effects, other, chunked, variants: tried }) => {
      const below = await loaded();
      // The reader has gone on; these are tried again if that configuration returns.
      if (keyNow() !== last) return void (last = null);
      variants = Object.fromEntries(Object.entries(tried).map(([name, one]) => [name, { ...one, before: now }]));
      fill(change, advice);
      fill(units, effects);
      extras = { other, chunked };
      if (other) fill(links, below.linksSection({ ...now, other }, at, width));
      if (chunked.length) fill(pipeline, below.pipelineSection({ ...now, chunked }, at, width));
      for (const { body } of [change, units]) body.removeAttribute("aria-busy");
    });
  };
  // The button that was pressed will be removed, so its section takes the focus.
  const applied = (changes) => {
    change.heading.focus();
    apply(changes);
  };

  const watcher = new ResizeObserver(([entry]) => {
    const next = Math.floor(entry.contentRect.width);
    // 0 while it is not shown.
    if (next < 100 || Math.abs(next - width) < 2) return;
    width = next;
    if (shown) draw();
  });
  watcher.observe(details);
  // Parts below the first screen wait until a reader comes near, or prints the page.
  let near = false;
  const wake = () => {
    if (near) return;
    near = true;
    if (shown) draw();
  };
  const comer = whenNear(wake, signal);
  for (const { box } of alike) comer.observe(box);
  addEventListener("beforeprint", wake, { signal });
  // Exports are loaded when a reader comes near them.
  const reader = whenNear(async () => {
    const { takeaway } = await import("./modeler_take.js");
    take = takeaway(say, catalog);
    take.update(...taken);
    await released();
    fill(away, [take.element]);
  }, signal, "400px");
  signal.addEventListener("abort", () => watcher.disconnect());

  return {
    answer: top,
    details,
    alone: () => alone,
    /** What is shown under a name: a configuration by its index, "b", or a variant. */
    at: (name) => {
      const [one, other] = shown?.[0] ?? [];
      return { 0: one, 1: other, b: other && { ...other, before: one } }[name] ?? variants[name];
    },
    update(found, at, address) {
      taken = [found[at], address];
      take?.update(...taken);
      // The second configuration may be missing; what was shown stays unchanged.
      const failed = found.some(({ error }) => error);
      alone = failed && !found[0].error && shown?.[0].length !== 2;
      for (const box of [top, details]) box.classList.toggle("is-stale", failed && !alone);
      if (failed && !alone) return;
      shown = alone ? [found.slice(0, 1), 0] : [found, at];
      width ||= Math.floor(details.clientWidth) || 720;
      draw();
    },
  };
}

const waiting = () => el("p", { class: "modeler-note" }, "Computing …");
const fill = ({ body }, children) => body.replaceChildren(...children.filter(Boolean));

// Waits until the current frame has been painted; without frames (a hidden page), only briefly.
function afterPaint(work) {
  if (document.hidden) setTimeout(work, 0);
  else requestAnimationFrame(() => setTimeout(work, 0));
}
