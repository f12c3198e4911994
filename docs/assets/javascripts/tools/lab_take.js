// Exports of the schedule lab: the order as text, a table of times, Python for
// torch, the picture, the command that prints the same, and the link.

import { InputError } from "../engine/errors.js";
import { slots_csv, torch_listing } from "../models/pipeline/schedule_work.js";
import { embedded } from "./lab_svg.js";
import { button, el, field, selectField } from "./dom.js";
import { copyText, download, showCommand } from "./files.js";
import { commandOf } from "./lab_state.js";

/** The order as lines for people. */
export const orderText = ({ orders }) => orders.map((order, rank) => `rank ${rank}: ${order.join(" ")}\n`).join("");

export const FORMS = new Map([
  ["text", ["Order", ({ schedule }) => orderText(schedule), "txt", "text/plain"]],
  ["csv", ["Times, CSV", ({ trace }) => slots_csv(trace), "csv", "text/csv"]],
  ["torch", ["torch", ({ schedule }) => torch_listing(schedule), "py", "text/x-python"]],
]);

/** Returns { element, update(state, runs), setLink }; `picture()` is the current drawing. */
export function makeTaking(say, picture) {
  let [runs, state, run, form] = [[], null, null, "text"];
  const which = selectField("Schedule", { name: "taken", options: [], onChange: (key) => { run = runs.find((one) => one.key === key); show(); } });
  const code = el("pre", { class: "tool-code lab-code", tabindex: 0, "aria-label": "The order" });
  const command = el("pre", { class: "tool-code", tabindex: 0, "aria-label": "Command line" });
  const tabs = el("div", { class: "tool-actions", role: "group", "aria-label": "Written as" },
    [...FORMS].map(([key, [title]]) => button(title, () => { form = key; show(); }, { "data-form": key })));
  const told = (text) => async () => say((await copyText(text())) ? "Copied" : "Select it and copy");
  const copy = button("Copy", told(() => code.textContent));
  const save = button("Download", () => {
    const [, write, ending, type] = FORMS.get(form);
    download(`${run.name}.${ending}`, write(run), type);
  }, { "data-file": "order" });
  const svg = button("Picture, SVG", () => download("schedules.svg", embedded(picture()), "image/svg+xml"), { "data-file": "svg" });
  const traced = button("Open as a trace", async () => {
    const { scheduleTrace } = await import("./lab_trace.js");
    download(`${run.name}.json`, scheduleTrace(run.trace), "application/json");
  }, { "data-file": "trace" });
  const link = el("input", { readonly: true, on: { focus: () => link.select() } });
  const element = el("div", { class: "lab-take" },
    el("div", { class: "lab-choices" }, which.box, tabs), code, el("div", { class: "tool-actions" }, copy, save, svg, traced),
    el("p", { class: "modeler-note" }, "On the command line; --json prints all measures, --as csv or --as torch the files above, and --as trace a file for ui.perfetto.dev:"), command,
    el("div", { class: "modeler-share" }, field("Link to this configuration", link), button("Copy link", told(() => link.value))));

  function show() {
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.form === form));
    let text;
    let possible = true;
    try {
      text = FORMS.get(form)[1](run);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      [text, possible] = [`${error.message}.`, false];
    }
    code.textContent = text;
    copy.disabled = save.disabled = !possible;
    showCommand(command, commandOf(run.name, state));
    which.select.value = run.key;
  }

  function update(now, found) {
    [state, runs] = [now, found];
    element.hidden = !runs.length;
    if (!runs.length) return;
    which.select.replaceChildren(...runs.map(({ key, title }) => el("option", { value: key }, title)));
    run = runs.find(({ key }) => key === run?.key) ?? runs[0];
    show();
  }
  return { element, update, setLink: (address) => { link.value = address; } };
}
