// Exports of the modeler: the link, the command line's JSON, tables, commands.

import { button, el, field } from "./dom.js";
import { copyText, download, showCommand } from "./files.js";
import { writeBox } from "./write_out.js";
import { commandOf, hasOwnNumbers, traceCommand } from "./modeler_command.js";

const CHAPTERS = [
  ["Pipeline schedules", "guide/pipeline-schedules"],
  ["The communication roofline", "guide/communication-roofline"],
  ["Rank mapping", "guide/rank-mapping"],
];

const tables = () => import("./modeler_files.js");

/** Returns { element, update(found, address) }. */
export function takeaway(say, catalog) {
  let found = null;
  const copied = (read) => async (event) => {
    const pressed = event.currentTarget;
    const said = (await copyText(read())) ? "Copied" : "Select it and copy";
    const before = pressed.dataset.text ?? pressed.textContent;
    pressed.dataset.text = before;
    pressed.textContent = said;
    say(said);
    setTimeout(() => {
      pressed.textContent = before;
    }, 1500);
  };
  const link = el("input", { readonly: true, on: { focus: () => link.select() } });
  const file = (text, name, type, read) => button(text, async () => download(name, await read(), type), { "data-file": name });
  const files = el(
    "div",
    { class: "tool-actions" },
    file("Step, JSON", "step.json", "application/json", async () => (await tables()).stepJson(found)),
    file("Memory, JSON", "memory.json", "application/json", async () => (await tables()).json(found.memory)),
    file("Communication, CSV", "communication.csv", "text/csv", async () => (await tables()).communicationCsv(found)),
    file("Memory, CSV", "memory.csv", "text/csv", async () => (await tables()).memoryCsv(found)),
    file("Open as a trace", "trace.json", "application/json", trace),
  );
  async function trace() {
    const { together, traceText } = await import("./trace_export.js");
    if (together(found.job)) showCommand(commands, commands.textContent.replace(/trace\.json(?! --together)/, "trace.json --together"));
    return traceText(found.job);
  }
  const start = writeBox(say);
  const commands = el("pre", { class: "tool-code", tabindex: "0", "aria-label": "Commands" });
  const element = el(
    "div",
    { class: "modeler-take" },
    el(
      "div",
      { class: "modeler-share" },
      field("Link to this configuration", link),
      button(
        "Copy link",
        copied(() => link.value),
      ),
    ),
    start.element,
    files,
    el("p", { class: "modeler-note" }, "The command line prints the same JSON. Open the trace in ui.perfetto.dev, next to your own:"),
    commands,
    el(
      "p",
      {},
      "Why it takes that long: ",
      CHAPTERS.flatMap(([name, path], at) => [at ? ", " : "", el("a", { href: `../../${path}/` }, name)]),
      ".",
    ),
  );
  return {
    element,
    update(now, address) {
      found = now;
      link.value = address;
      start.update(now.error ? null : now.job);
      for (const one of files.children) one.disabled = Boolean(now.error);
      showCommand(commands, hasOwnNumbers(now.state)
        ? "# The command line has no names for your own numbers: use the files."
        : `${commandOf("step", now.state, catalog)}\n${commandOf("memory", now.state, catalog)}\n${traceCommand(now.state, catalog)}`);
    },
  };
}
