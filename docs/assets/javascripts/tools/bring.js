// Where a reader brings a script, a configuration or a config.json: pasted, dropped or chosen.

import { button, el, field, released } from "./dom.js";

const MOST = 1e6; // bytes of a file that are read; the parser accepts far less

const SUMMARY = "Bring your job: paste or drop a script, a configuration or a config.json";
const LABEL = "Script, command, configuration or config.json";

/**
 * Returns { element, forget() }. `read({ text, answers, isLast, again })` resolves to elements or
 * false: what was found, and a form for variables without a value, which calls `again(answers)`.
 * An answer that arrives after the reader has gone elsewhere is dropped.
 */
export function bringBox(read, signal, { summary = SUMMARY, label = LABEL } = {}) {
  let given = null; // the last text; an earlier one may finish later
  const answer = el("div", { class: "tool-answer", "aria-live": "polite" });
  const text = el("textarea", {
    rows: 4, spellcheck: "false",
    on: { paste: () => setTimeout(() => load()) },
  });
  const file = el("input", { type: "file", "aria-label": "Choose a file", on: { change: () => open(file.files[0]) } });
  async function load(answers = {}) {
    const mine = given = { text: text.value, answers, isLast: () => mine === given, again: (more) => load({ ...answers, ...more }) };
    const found = mine.text.trim() && await read(mine);
    await released();
    if (mine === given) answer.replaceChildren(...(found || []));
  }
  async function open(what) {
    if (!what) return;
    element.open = true;
    text.value = what.text ? await what.slice(0, MOST).text() : what;
    load();
  }
  const element = el("details", { class: "tool-bring" },
    el("summary", {}, summary),
    field(label, text),
    el("div", { class: "tool-actions" }, button("Load it", () => load()), file),
    answer);
  const options = { signal };
  addEventListener("dragover", (event) => event.preventDefault(), options);
  addEventListener("drop", (event) => {
    const [dropped] = event.dataTransfer.files;
    // File inputs handle dropped files themselves.
    if (!dropped || event.target.closest?.("input[type=file]")) return;
    event.preventDefault();
    open(dropped);
  }, options);
  addEventListener("paste", (event) => {
    if (!event.target.closest?.("input, textarea, select")) open(event.clipboardData.getData("text").trim());
  }, options);
  return { element, forget() { given = null; answer.replaceChildren(); } };
}
