// The schedule lab: pipeline schedules run side by side, to step through, explore, and
// beat. One state, from the address or from the form, determines everything that is shown.

import { bringBox } from "./bring.js";
import { button, el, liveRegion, mountTool, perFrame } from "./dom.js";
import { makeLabForm } from "./lab_form.js";
import { SCHEMA, fromQuery, queryOf, runsOf } from "./lab_state.js";
import { makeStage } from "./lab_stage.js";
import { makeTaking } from "./lab_take.js";
import { makePlacing } from "./lab_place.js";
import { pathSentence } from "./lab_words.js";
import { schedule_title } from "../models/pipeline/schedules.js";
import { held_words, schedules_sentence } from "../models/pipeline/schedule_words.js";
import { bytes, change, percent } from "./quantities.js";
import { ms } from "./lab_picture.js";
import { jobOfLab } from "./job_addresses.js";
import { carry } from "./job_carried.js";
import { tellJob } from "./job_record.js";
import { addressWriter } from "./address.js";
import { readAddress } from "./state.js";

/** Builds the tool in `root`; `titles` has the name of each schedule. */
async function build(root, signal, { titles }) {
  let { state, moves, job, problems } = await readAddress(location.search, { ...SCHEMA, moves: {} }, fromQuery);
  let [runs, failed, first] = [[], [], true];
  const writeAddress = addressWriter(signal);
  const { region, say } = liveRegion();
  const changed = (partial) => {
    state = { ...state, ...partial };
    problems = [];
    render();
  };
  const form = makeLabForm({ titles, state, onChange: changed });
  const brought = bringBox(async ({ text, isLast }) => {
    const { elsewhere } = await import("./elsewhere.js");
    return isLast() && (elsewhere(text) ?? [el("div", { class: "tool-message is-bad" }, el("p", {}, "Expected a launch script or a configuration of a training job."))]);
  }, signal, { summary: "Bring your job: its pipeline" });
  form.element.prepend(brought.element);
  const stage = makeStage({ signal, say, onCursor: (cursor) => placing.update(runs, cursor) });
  const placing = makePlacing({ signal, say, onChange: (now) => { moves = now; remember(); } });
  const taking = makeTaking(say, () => stage.picture());
  const answer = el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": "The schedules compared" });
  const answered = el("p", { class: "tool-sentence" });
  const messages = el("div", { class: "lab-messages" });
  const paths = el("div", { class: "lab-paths modeler-note" });
  const section = (title, ...content) => el("section", { class: "tool-section" }, el("h2", {}, title), ...content);
  const sections = [section("Place the next slot yourself", placing.element), section("Take it away", taking.element)];
  root.replaceChildren(
    answered,
    el("div", { class: "tool-columns" }, form.element,
      el("div", { class: "lab-results" }, messages, answer, stage.element, paths)),
    ...sections, region);

  const render = perFrame(() => signal.aborted || renderNow());
  function renderNow() {
    const found = runsOf(state).map((run) => ({ ...run, title: schedule_title(run.name, run.chunks ?? 1) }));
    failed = found.filter(({ error }) => error);
    const good = found.filter(({ error }) => !error);
    // Two of one kind are distinguished by letters.
    for (const run of good) if (good.some((other) => other !== run && other.name === run.name)) run.title += ` (${run.key.toUpperCase()})`;
    if (good.length) runs = good;
    showMessages();
    showAnswer();
    stage.show(runs, state);
    paths.hidden = !state.path;
    paths.replaceChildren(...(state.path ? [el("p", {}, "Critical paths: the step gets shorter only if these slots do."), ...runs.map((run) => el("p", {}, pathSentence(run)))] : []));
    placing.update(runs, stage.cursor(), first ? moves : null);
    taking.update(state, runs);
    first = false;
    answered.textContent = runs.length ? schedules_sentence(runs.map(carriedOut), ms) : "";
    say(answered.textContent);
    remember();
  }

  function showMessages() {
    const box = (kind, text, ...more) => el("div", { class: `tool-message is-${kind}` }, el("p", {}, text), ...more);
    messages.replaceChildren(
      ...problems.map((text) => box("warning", `In the address, ${text}.`)),
      ...failed.filter(({ name }, at) => failed.findIndex((one) => one.name === name) === at).map(({ name, error, nearest }) =>
        box("bad", `${titles[name]}: ${error.message}.`,
          nearest.length ? el("div", { class: "tool-actions" }, nearest.map(({ stages, microbatches }) =>
            button(`${stages} stages, ${microbatches} microbatches`, () => { form.set({ stages, microbatches }); changed({ stages, microbatches }); }))) : null)),
      ...(failed.length && !runs.length ? [box("plain", "None of the schedules can be carried out with these sizes.")] : []));
    const stale = failed.length > 0 && runs.every(({ key }) => failed.some((one) => one.key === key));
    for (const one of [answered, answer, stage.element]) one.classList.toggle("is-stale", stale);
    for (const one of [answered, answer, stage.element, ...sections]) one.hidden = !runs.length;
  }

  function showAnswer() {
    const [reference] = runs;
    const head = ["Schedule", "Chunks", "Time of a step", reference ? `against ${reference.title}` : "", "Idle", "Most held on a rank", "In flight"];
    answer.replaceChildren(el("table", { class: "tool-table lab-table" },
      el("caption", { class: "tool-live" }, "The schedules compared"),
      el("thead", {}, el("tr", {}, head.map((text, at) => el("th", { scope: "col", class: at ? "num" : null }, text)))),
      el("tbody", {}, runs.map((run) => {
        const { trace, peaks } = run;
        const most = peaks.indexOf(Math.max(...peaks));
        const cells = [
          String(run.chunks), ms(trace.makespan), run === reference ? "–" : change(trace.makespan / reference.trace.makespan - 1),
          percent(trace.bubble_fraction), `${bytes(peaks[most])} (rank ${most})`, `${Math.round(Math.max(...trace.peak_in_flight) * 100) / 100}`,
        ];
        return el("tr", {}, el("th", { scope: "row" }, run.title), cells.map((text) => el("td", { class: "num" }, text)));
      }))));
  }

  function remember() {
    const told = jobOfLab(job, state);
    const now = new URLSearchParams([...new URLSearchParams(queryOf(state, told)), ...(moves ? [["moves", moves]] : []), ...carry(told)]).toString();
    const here = new URL(location.href);
    Object.assign(here, { search: now, hash: "" });
    taking.setLink(here.href);
    writeAddress(now);
    tellJob(told);
  }
  renderNow();
}

const carriedOut = ({ title, trace, peaks }) => {
  const most = Math.max(...peaks);
  return ({ title, trace, held: held_words(`${bytes(most)} of activations`, peaks.indexOf(most)) });
};

mountTool("#schedules", build);
