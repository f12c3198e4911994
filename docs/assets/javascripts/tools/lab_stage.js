// The picture of the schedule lab: lanes on one axis, a cursor that steps, and the slot under the
// pointer or the arrow keys, with the inputs that it waited for.

import { button, el, perFrame, svgEl } from "./dom.js";
import { kindsOf, lanesOf, marksOf, ms, planOf, slotAt, slotBox } from "./lab_picture.js";
import { swatch } from "./modeler_table.js";
import { criticalPaths, inputsOf, momentSentences, pictureSentence, slotSentences } from "./lab_words.js";

const PLAY_MS = 450; // from one event to the next
const ZOOMS = [1, 2, 4, 8];
const GAP = 8; // px between a slot and its explanation

/** Returns { element, show(runs, state), cursor(), picture() }. */
export function makeStage({ signal, say, onCursor }) {
  let [runs, state, plan, critical] = [[], null, null, null];
  let [events, event, chosen, pinned, zoom, timer] = [[], 0, null, false, 1, 0];
  const marks = svgEl("g", {});
  const lanes = svgEl("g", {});
  const svg = svgEl("svg", { class: "fig modeler-svg lab-svg", role: "img" }, lanes, marks);
  const keys = "Arrow keys go from slot to slot, up and down from rank to rank, Page Up and Page Down from schedule to schedule; Enter keeps a slot selected, Escape clears it.";
  const scroller = el("div", { class: "lab-scroll" , role: "group", tabindex: 0, "aria-label": `Timelines. ${keys}` }, svg);
  const told = el("div", { class: "lab-told", "aria-live": "off", hidden: true });
  const hint = el("p", {}, "Point at a slot, or walk through them with the arrow keys, to see what it waited for.");
  const legend = el("div", { class: "modeler-legend" });
  const moment = el("div", { class: "lab-moment" });
  const slider = el("input", { type: "range", min: 0, max: 1, step: 1, value: 1, "aria-label": "Time", on: { input: () => step(Number(slider.value)) } });
  const play = button("Play", () => (timer ? stop() : start()));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const stepper = el("div", { class: "lab-stepper" },
    button("Start", () => step(0)),
    button("‹", () => step(event - 1), { "aria-label": "One event back" }), play,
    button("›", () => step(event + 1), { "aria-label": "One event on" }),
    button("End", () => step(events.length - 1)), slider);
  const zooms = el("div", { class: "tool-chips", role: "group", "aria-label": "Width of the picture" }, el("span", {}, "Width"),
    ZOOMS.map((by) => button(`×${by}`, () => { zoom = by; draw(); }, { "aria-pressed": by === 1, "data-zoom": by })));
  const element = el("div", { class: "lab-stage" }, el("div", { class: "lab-bar" }, stepper, zooms), el("div", { class: "lab-picture" }, scroller, told), legend, el("div", { class: "lab-below" }, moment, hint));

  const time = () => (event >= events.length - 1 ? null : events[event]);
  const showMotion = () => { play.hidden = still.matches; if (still.matches) stop(); };
  still.addEventListener("change", showMotion, { signal });
  showMotion();

  function start() {
    if (event >= events.length - 1) step(0);
    play.textContent = "Pause";
    timer = setInterval(() => (event >= events.length - 1 ? stop() : step(event + 1, true)), PLAY_MS);
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }
  signal.addEventListener("abort", stop);

  function step(to, playing = false) {
    if (!playing) stop();
    event = Math.max(0, Math.min(events.length - 1, to));
    slider.value = event;
    tellMoment();
    mark();
    onCursor(time());
  }

  function tellMoment() {
    const at = time();
    const sentences = at === null ? ["The step as a whole. Step back, or play it from the start."] : [`At ${ms(at)}.`, ...momentSentences(runs, at)];
    moment.replaceChildren(...sentences.map((text) => el("p", {}, text)));
    slider.setAttribute("aria-valuetext", at === null ? "the end" : sentences.join(" "));
  }

  const mark = perFrame(() => {
    if (!plan) return;
    const run = chosen && runs.find(({ key }) => key === chosen.key);
    const here = run && { ...chosen, inputs: inputsOf(run, run.lanes[chosen.rank][chosen.at]) };
    marks.replaceChildren(...marksOf(plan, { cursor: time(), chosen: here, paths: critical }));
  });

  function choose(slot, aloud) {
    const same = slot && chosen && slot.key === chosen.key && slot.rank === chosen.rank && slot.at === chosen.at;
    if (same || (!slot && !chosen)) return;
    chosen = slot;
    const run = slot && runs.find(({ key }) => key === slot.key);
    told.hidden = !run;
    if (run) {
      const sentences = slotSentences(run, slot.rank, slot.at).join(" ");
      told.replaceChildren(el("p", {}, sentences));
      if (aloud) say(sentences);
    }
    besideSlot();
    mark();
  }

  // Places the explanation below its slot, or above it if there is no room, so that it covers nothing of that rank.
  function besideSlot() {
    const group = chosen && plan.groups.find(({ run }) => run.key === chosen.key);
    if (!group) return;
    const { x, y, height } = slotBox(plan, group.top, group.run.lanes[chosen.rank][chosen.at]);
    const [below, above] = [y + height + GAP, y - GAP - told.offsetHeight];
    const left = Math.min(x - scroller.scrollLeft, scroller.clientWidth - told.offsetWidth);
    told.style.left = `${Math.max(0, left)}px`;
    told.style.top = `${above >= 0 && below + told.offsetHeight > plan.bottom ? above : below}px`;
  }
  scroller.addEventListener("scroll", besideSlot, { passive: true });

  const at = ({ clientX, clientY }) => {
    const { left, top } = svg.getBoundingClientRect();
    return plan && slotAt(plan, clientX - left, clientY - top);
  };
  svg.addEventListener("pointermove", (pointer) => pinned || choose(at(pointer), false));
  svg.addEventListener("pointerleave", () => pinned || choose(null, false));
  svg.addEventListener("click", (pointer) => {
    const slot = at(pointer);
    pinned = Boolean(slot);
    choose(slot, true);
  });
  scroller.addEventListener("keydown", (key) => {
    const to = moved(key.key);
    if (to === undefined) return;
    key.preventDefault();
    pinned = Boolean(to);
    choose(to, true);
    if (to) into(to);
    besideSlot();
  });

  // The slot that a key leads to; null for none, undefined for keys without meaning here.
  function moved(key) {
    if (key === "Escape") return null;
    if (key === "Enter") return chosen ?? undefined;
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const upwards = { ArrowUp: -1, ArrowDown: 1 }[key];
    const other = { PageUp: -1, PageDown: 1 }[key];
    if (!sideways && !upwards && !other) return undefined;
    const where = runs.findIndex((run) => run.key === chosen?.key);
    if (where < 0) return runs.length ? { key: runs[0].key, rank: 0, at: 0 } : undefined;
    const run = runs[Math.max(0, Math.min(runs.length - 1, where + (other ?? 0)))];
    const { lanes } = run;
    if (sideways) return { ...chosen, at: Math.max(0, Math.min(lanes[chosen.rank].length - 1, chosen.at + sideways)) };
    const { start } = runs[where].lanes[chosen.rank][chosen.at];
    const rank = Math.max(0, Math.min(lanes.length - 1, chosen.rank + (upwards ?? 0)));
    const next = lanes[rank].findIndex(({ end }) => end > start);
    return { key: run.key, rank, at: next < 0 ? lanes[rank].length - 1 : next };
  }

  function into({ key, rank, at: place }) {
    const x = plan.scale(runs.find((run) => run.key === key).lanes[rank][place].start);
    const { scrollLeft, clientWidth } = scroller;
    if (x < scrollLeft + 40 || x > scrollLeft + clientWidth - 60) scroller.scrollLeft = x - clientWidth / 2;
  }

  function planned(width) {
    const end = Math.max(...runs.map(({ trace }) => trace.makespan));
    return planOf(runs, { width, strips: state.strips, end });
  }

  function draw() {
    if (!runs.length) return;
    const width = Math.max(300, scroller.clientWidth || 700) * zoom;
    plan = planned(width);
    const height = plan.bottom + 24;
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": pictureSentence(runs) })) svg.setAttribute(name, value);
    lanes.replaceChildren(...lanesOf(plan));
    for (const one of zooms.querySelectorAll("button")) one.setAttribute("aria-pressed", String(Number(one.dataset.zoom) === zoom));
    mark();
  }
  let seen = 0;
  const watcher = new ResizeObserver(([{ contentRect }]) => {
    if (Math.round(contentRect.width) === seen) return;
    seen = Math.round(contentRect.width);
    draw();
  });
  watcher.observe(scroller);
  signal.addEventListener("abort", () => watcher.disconnect());

  function show(now, asked) {
    const before = time();
    stop();
    [runs, state] = [now, asked];
    const times = new Set([0]);
    for (const { trace } of runs) for (const lane of [...trace.starts, ...trace.ends]) for (const one of lane) times.add(one);
    events = [...times].sort((a, b) => a - b);
    const kept = before === null ? -1 : events.findIndex((one) => one >= before);
    event = kept < 0 ? events.length - 1 : kept;
    slider.max = events.length - 1;
    slider.value = event;
    critical = state.path ? criticalPaths(runs) : null;
    [chosen, pinned] = [null, false];
    told.hidden = true;
    legend.replaceChildren(...kindsOf(runs).map(([words, role]) => el("span", {}, swatch(role), words)),
      ...(runs.some(({ schedule }) => schedule.placement.chunks > 1) ? [el("span", {}, "paler: a later chunk of its rank; 3₂ is microbatch 3 on chunk 2")] : []),
      el("span", {}, swatch("idle"), "idle"),
      ...(state.strips ? [el("span", {}, swatch("series-1"), "activations held, on one scale; the peak of each rank is at the right")] : []));
    tellMoment();
    if (seen) draw(); // otherwise it is drawn once its width is known, and keeps its height until then
    else if (runs.length) svg.setAttribute("height", planned(700).bottom + 24);
  }
  return { element, show, cursor: time, picture: () => svg };
}
