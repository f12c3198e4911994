// Everything that the modeler shows beside its form, and when each part of it is drawn again.

import { el } from "./dom.js";
import { bought, candidatesOf, recommend, unitsOf } from "./advice.js";
import { answer, comparison } from "./modeler_answer.js";
import { linksSection, memorySection, pipelineSection, timeSection, trafficSection, utilisationSection } from "./modeler_sections.js";
import { takeaway } from "./modeler_take.js";
import { sensitivities, tips } from "./modeler_tips.js";

const SLICE_MS = 8; // of a variant's evaluation at a time, so that typing is never held up

/** Returns { answer, details, at(index), update(found, at, address) }. */
export function results({ signal, say, apply, evaluate, catalog }) {
  const top = el("div", { class: "modeler-answer", role: "group", "aria-label": "Answer" });
  const details = el("div", { class: "modeler-details" });
  const section = (title, ...children) => {
    const body = el("div", { class: "modeler-body" }, children);
    const box = el("section", { class: "tool-section" }, el("h2", {}, title), body);
    details.append(box);
    return { box, body };
  };
  const side = section("Side by side");
  const time = section("Where the time goes");
  const change = section("What to change");
  const pipeline = section("Pipeline");
  const memory = section("Memory");
  const traffic = section("What a GPU sends");
  const links = section("Links: bandwidth that is needed");
  const units = section("What one more unit buys");
  const utilisation = section("Utilisation");
  const take = takeaway(say);
  section("Take away", take.element);

  let [width, shown, last] = [0, null, null];
  const sweep = idleSweep(signal);

  const draw = () => {
    const [all, at] = shown;
    const now = all[at];
    top.replaceChildren(...answer(all));
    side.box.hidden = all.length < 2;
    side.body.replaceChildren(...(all.length > 1 ? [comparison(all)] : []));
    fill(time, timeSection(all, at, width));
    fill(pipeline, pipelineSection(now, at, width));
    fill(memory, memorySection(now, at, width));
    fill(traffic, trafficSection(now, at, width));
    fill(links, linksSection(now, at, width));
    fill(utilisation, utilisationSection(now, at));
  };

  // Variants are evaluated after the answer has been painted, a few at a time.
  const explore = () => {
    const [all, at] = shown;
    const now = all[at];
    for (const { body } of [change, units]) body.setAttribute("aria-busy", "true");
    sweep(variants(now, evaluate, catalog), ({ tried, rows, other }) => {
      change.body.replaceChildren(...tips(now, recommend(now, tried), apply));
      units.body.replaceChildren(...sensitivities(rows));
      if (other) fill(links, linksSection({ ...now, other }, at, width));
      for (const { body } of [change, units]) body.removeAttribute("aria-busy");
    });
  };

  const watcher = new ResizeObserver(([entry]) => {
    const next = Math.floor(entry.contentRect.width);
    if (next < 100 || Math.abs(next - width) < 2) return; // 0 while it is not shown
    width = next;
    if (shown) draw();
  });
  watcher.observe(details);
  signal.addEventListener("abort", () => watcher.disconnect());

  return {
    answer: top,
    details,
    /** The configuration that is shown, by its index. */
    at: (index) => shown?.[0][index],
    update(found, at, address) {
      take.update(found[at], address);
      const failed = found.some(({ error }) => error);
      for (const box of [top, details]) box.classList.toggle("is-stale", failed);
      if (failed) return;
      shown = [found, at];
      width ||= Math.floor(details.clientWidth) || 720;
      draw();
      const key = JSON.stringify(found[at].state);
      if (key !== last) explore();
      last = key;
    },
  };
}

const fill = ({ body }, children) => body.replaceChildren(...children.filter(Boolean));

// Evaluates variants one by one; what it returns at the end is what they say together.
function* variants(now, evaluate, catalog) {
  const tried = [];
  for (const one of candidatesOf(now)) {
    tried.push({ ...one, found: evaluate({ ...now.state, ...one.changes }) });
    yield;
  }
  const rows = [];
  for (const { tries, name } of unitsOf(now, catalog)) {
    for (const changes of tries) {
      const found = evaluate({ ...now.state, ...changes });
      yield;
      if (found.error) continue;
      rows.push({ name: name(changes), effect: bought(now, found) });
      break;
    }
  }
  const rings = now.setup.parallel.cp > 1 && now.setup.context_exchange === "p2p";
  const other = rings ? evaluate({ ...now.state, double: !now.setup.double_buffering }) : null;
  return { tried, rows, other: other?.error ? null : other };
}

// Runs a generator in idle time, in slices; a new one takes the place of the one before.
function idleSweep(signal) {
  let current = null;
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  return (work, done) => {
    current = work;
    const go = () => {
      const until = performance.now() + SLICE_MS;
      while (current === work && !signal.aborted) {
        const { done: ended, value } = work.next();
        if (ended) {
          done(value);
          return;
        }
        if (performance.now() > until) {
          later(go, { timeout: 500 });
          return;
        }
      }
    };
    later(go, { timeout: 500 });
  };
}
