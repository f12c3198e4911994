// "Place the next slot yourself": a board that a reader fills, and how it compares.

import { InputError } from "../engine/errors.js";
import { action_of, as_schedule, empty_board, follow, left, offers, place, refusal, undo } from "../models/pipeline/board.js";
import { peak_held } from "../models/pipeline/schedule_work.js";
import { simulate } from "../models/pipeline/simulate.js";
import { button, el, field, selectField, svgEl } from "./dom.js";
import { KINDS, lanesOf, ms, planOf } from "./lab_picture.js";
import { bytes, change, percent } from "./quantities.js";

export const MOST_MOVES = 1000; // in an address

/** Replays the moves of an address in order; reports what is wrong with the first invalid one. */
export function replay(of, moves) {
  for (const text of moves ? moves.split(".").slice(0, MOST_MOVES) : []) {
    try {
      place(of, action_of(of, text));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return `${text.slice(0, 12)} of the address: ${error.message}`;
    }
  }
  return null;
}

export const movesOf = (of) => of.moves.slice(0, MOST_MOVES).join(".");

/** The board as a drawing: its lanes so far, and the end of the last one. */
export function drawable({ schedule, lanes }, { bytes }) {
  const end = Math.max(0, ...lanes.map((lane) => lane.at(-1)?.end ?? 0));
  return { title: "You", schedule, lanes, end, bytes, peaks: peak_held(lanes, bytes) };
}

/** The board compared with the schedule: rows of [what, yours, its]. */
export function scoreOf(of, run) {
  const yours = drawable(of, run);
  const over = left(of) === 0;
  const trace = over ? simulate(as_schedule(of), run.trace.durations) : null;
  const { end } = yours;
  const theirs = run.trace;
  return {
    over,
    rows: [
      [over ? "Time of the step" : "Time so far", over ? `${ms(end)} (${change(end / theirs.makespan - 1)})` : ms(end), ms(theirs.makespan)],
      ["Idle", over ? percent(trace.bubble_fraction) : "–", percent(theirs.bubble_fraction)],
      ["Most held on a rank", bytes(Math.max(...yours.peaks)), bytes(Math.max(...run.peaks))],
    ],
  };
}

/** Returns { element, update(runs, cursor), movesOf }; `onChange` is called after every move. */
export function makePlacing({ signal, say, onChange }) {
  let [runs, run, of, rank, cursor, moves] = [[], null, null, 0, null, ""];
  const picture = el("div", { class: "lab-board" });
  const score = el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": "Your schedule compared with the other" });
  const answer = el("div", { class: "lab-answer" });
  const offered = el("div", { class: "tool-chips", role: "group", "aria-label": "Next actions of the rank" });
  const against = selectField("Against", { name: "against", options: [], onChange: (key) => begin(runs.find((one) => one.key === key), "") });
  const ranks = selectField("Rank", { name: "rank", options: [], onChange: (value) => { rank = Number(value); show(); } });
  const typed = el("input", { type: "text", name: "action", autocomplete: "off", spellcheck: "false", placeholder: "2F0" });
  const form = el("form", { class: "lab-typed", on: { submit: (event) => { event.preventDefault(); if (typed.value.trim()) tryWord(typed.value); } } },
    field("Or type an action: stage, kind, microbatch", typed), el("button", { type: "submit", class: "tool-button" }, "Place it"));
  const actions = el("div", { class: "tool-actions" },
    button("Undo", () => { undo(of); after("Taken back."); }),
    button("Start over", () => begin(run, "")),
    button("Take over at the cursor", takeOver),
    button("Finish as the schedule would", finish));
  const element = el("div", { class: "lab-place" },
    el("p", { class: "modeler-note" }, "Choose a rank, then what it runs next; it starts as early as it can. B is a whole backward; I and W are its two parts. An action that can't run yet is refused, with the reason."),
    el("div", { class: "lab-choices" }, against.box, ranks.box, form), offered, answer, actions, picture, score);

  function begin(chosen, from) {
    run = chosen;
    of = empty_board(run.schedule, run.trace.durations);
    rank = 0;
    const options = run.lanes.map((_, at) => el("option", { value: at }, `rank ${at}`));
    ranks.select.replaceChildren(...options);
    const problem = replay(of, from);
    moves = movesOf(of);
    show();
    tell(problem ? "bad" : null, problem);
    onChange(moves);
  }

  const tell = (kind, text) => answer.replaceChildren(...(text ? [el("div", { class: `tool-message is-${kind}` }, el("p", {}, text))] : []));

  function after(text) {
    moves = movesOf(of);
    show();
    tell(left(of) === 0 ? "good" : "plain", left(of) === 0 ? `${text} ${verdict()}` : text);
    say(answer.textContent);
    onChange(moves);
  }

  function verdict() {
    const [yours, theirs] = [drawable(of, run).end, run.trace.makespan];
    if (yours < theirs) return `Every slot is placed: ${ms(yours)}, shorter than ${run.title} with ${ms(theirs)}.`;
    if (yours > theirs) return `Every slot is placed: ${ms(yours)}; ${run.title} takes ${ms(theirs)}.`;
    return `Every slot is placed: ${ms(yours)}, as long as ${run.title}.`;
  }

  function play(action) {
    try {
      const { rank: on, start, end } = place(of, action);
      rank = on;
      after(`${action} runs on rank ${on} from ${ms(start)} to ${ms(end)}.`);
    } catch (error) {
      refuse(error);
    }
  }

  function tryWord(text) {
    try {
      play(action_of(of, text));
      typed.value = "";
    } catch (error) {
      refuse(error);
    }
  }

  function refuse(error) {
    if (!(error instanceof InputError)) throw error;
    tell("bad", `${error.message}.`);
    say(error.message);
  }

  function takeOver() {
    const at = cursor ?? run.trace.makespan / 3;
    of = empty_board(run.schedule, run.trace.durations);
    const placed = follow(of, run.trace, at);
    after(`${placed} slots of ${run.title} that start before ${ms(at)} are placed.`);
  }

  function finish() {
    const placed = follow(of, run.trace);
    after(left(of) ? `${placed} slots placed; the rest of ${run.title}'s order cannot follow yours.` : `${placed} slots placed in ${run.title}'s order.`);
  }

  function show() {
    ranks.select.value = String(rank);
    against.select.value = run.key;
    const buttons = offers(of, rank).map((action) => {
      const why = refusal(of, action);
      const text = String(action);
      return button(text, () => play(action), {
        class: `tool-button${why ? " lab-refused" : ""}`, "data-action": text,
        "aria-label": `${text}, ${KINDS[action.kind][0]}${why ? ", not yet possible" : ""}`,
      });
    });
    offered.replaceChildren(...(buttons.length ? buttons : [el("span", {}, `Rank ${rank} has run everything.`)]));
    if (seen) draw(); // otherwise it is drawn once its width is known, which saves a layout
    const { rows, over } = scoreOf(of, run);
    score.replaceChildren(el("table", { class: "tool-table lab-score" },
      el("caption", { class: "tool-live" }, "Your schedule compared with the other"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, over ? "All placed" : `${left(of)} passes to place`), el("th", { class: "num", scope: "col" }, "You"), el("th", { class: "num", scope: "col" }, run.title))),
      el("tbody", {}, rows.map(([what, yours, its]) => el("tr", {}, el("th", { scope: "row" }, what), el("td", { class: "num" }, yours), el("td", { class: "num" }, its))))));
  }

  let end = 1;
  function draw() {
    const width = Math.max(300, picture.clientWidth || 600);
    const yours = drawable(of, run);
    const plan = planOf([yours], { width, strips: true, end: Math.max(end, yours.end) });
    picture.replaceChildren(svgEl("svg", {
      class: "fig modeler-svg", viewBox: `0 0 ${width} ${plan.bottom + 22}`, width, height: plan.bottom + 22,
      role: "img", "aria-label": `Your schedule: ${of.moves.length} slots placed, ${ms(yours.end)} so far`,
    }, ...lanesOf(plan)));
  }

  function update(now, at, from = null) {
    cursor = at;
    const same = run && now.find((one) => one.key === run.key);
    const changed = !same || same !== run;
    runs = now;
    if (!runs.length) return;
    end = Math.max(...runs.map(({ trace }) => trace.makespan));
    if (!changed && from === null) return;
    against.select.replaceChildren(...runs.map(({ key, title }) => el("option", { value: key }, title)));
    begin(same ?? runs[0], from ?? "");
  }
  let seen = 0;
  const watcher = new ResizeObserver(([{ contentRect }]) => {
    if (Math.round(contentRect.width) === seen) return;
    seen = Math.round(contentRect.width);
    if (of) draw();
  });
  watcher.observe(picture);
  signal.addEventListener("abort", () => watcher.disconnect());
  return { element, update };
}
