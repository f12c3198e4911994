// The file that starts a job, for each framework, by the command line's writers.

import { record } from "../engine/records.js";
import { layout_of } from "../scenarios/options/setup_of.js";
import { FILES, LABELS, write_job } from "../scenarios/writing/writers.js";
import { JobToWrite } from "../scenarios/writing/written.js";
import { button, el } from "./dom.js";
import { copyText, download, showCommand } from "./files.js";
import { OWN } from "./modeler_options.js";

/** The output of `figgen write` for a job of the engine: { text, refused, left_out }, the last as pairs. */
export function fileOf(software, { given, setup, model, dtype }) {
  const job = record(JobToWrite, { setup, parallel: layout_of(given), model: model === OWN ? "" : model, dtype });
  const { text, refused, left_out } = write_job(software, job);
  return { text, refused, left_out: [...left_out] };
}

/** Returns { element, update(job) }; a null job can start nothing. */
export function writeBox(say) {
  let [job, chosen, found] = [null, "megatron-lm", null];
  const code = el("pre", { class: "tool-code", tabindex: "0", "aria-label": "File that starts the job" });
  const note = el("p", { class: "modeler-note", "aria-live": "polite" });
  const tabs = el("div", { class: "tool-actions", role: "group", "aria-label": "Start it with" },
    Array.from(LABELS, ([name, label]) => button(label, () => { chosen = name; show(); }, { "data-software": name })));
  const actions = el("div", { class: "tool-actions" },
    button("Copy", async () => say((await copyText(found.text)) ? "Copied" : "Select it and copy")),
    button("Download", () => download(FILES.get(chosen), found.text, "text/plain"), { "data-file": "start" }));
  function show() {
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.software === chosen));
    found = job && fileOf(chosen, job);
    code.hidden = actions.hidden = !found?.text;
    showCommand(code, found?.text ?? "");
    const left = (found?.left_out ?? []).map(([name, why]) => `${name}, ${why}`);
    note.textContent = found?.refused ? `Not with ${LABELS.get(chosen)}: ${found.refused}.`
      : left.length ? `Not in this file: ${left.join("; ")}.` : "The file describes the whole job. It trains on random tokens or a public text for 50 steps.";
    note.hidden = !job;
  }
  const element = el("section", { class: "tool-write" }, el("h3", {}, "Start this job"), tabs, note, code, actions);
  return { element, update(now) { job = now; show(); } };
}
