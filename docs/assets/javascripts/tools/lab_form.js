// The form of the schedule lab: every field is a text that the schema of the state parses.

import { button, el, field, selectField } from "./dom.js";
import { SCHEMA } from "./lab_state.js";
import { readTyped } from "./state.js";

const FIELDS = [
  ["Pipeline", [
    ["stages", "Stages (ranks)"],
    ["microbatches", "Microbatches"],
    ["chunks", "Chunks per rank", "where a schedule lets you choose"],
    ["layers", "Layers by stage", "as 9,9,9,5; empty: alike"],
  ]],
  ["Times of a rank's share, in ms", [
    ["forward", "F, forward"],
    ["inputs", "I, backward for inputs"],
    ["weights", "W, backward for weights"],
    ["message", "Message to another rank"],
    ["pair", "F and B as a pair", "DualPipe; empty: their sum"],
  ]],
  ["Memory", [["memory", "Activations of a microbatch, GB", "of a rank's share of the layers"]]],
];
const LETTERS = { a: "First schedule", b: "Second", c: "Third" };

/** Returns { element, set(partial) }; `onChange(partial)` receives valid values. */
export function makeLabForm({ titles, state, onChange }) {
  const inputs = new Map();
  const note = (key) => el("div", { class: "lab-wrong", id: `lab-wrong-${key}` });
  const wrong = new Map();

  const choose = (key) => {
    const none = key === "a" ? [] : [["", "none"]];
    const { box, select } = selectField(LETTERS[key], {
      name: key, value: state[key], options: [...none, ...Object.entries(titles)], onChange: (value) => onChange({ [key]: value }),
    });
    inputs.set(key, select);
    return box;
  };
  const typed = ([key, text, hint]) => {
    const input = el("input", {
      type: "text", name: key, autocomplete: "off", spellcheck: "false", inputmode: key === "layers" ? "text" : "decimal",
      value: shown(state[key]), on: { input: () => read(key) },
    });
    inputs.set(key, input);
    const box = field(text, input, hint ?? null);
    wrong.set(key, note(key));
    box.append(wrong.get(key));
    return box;
  };
  const check = (key, text) => {
    const input = el("input", { type: "checkbox", name: key, checked: state[key], on: { change: () => onChange({ [key]: input.checked }) } });
    inputs.set(key, input);
    return el("label", { class: "tool-check" }, input, text);
  };

  function read(key) {
    const input = inputs.get(key);
    input.removeAttribute("aria-invalid");
    wrong.get(key).replaceChildren();
    readTyped(SCHEMA, key, input, {
      onValue: (value) => onChange({ [key]: value }),
      onBad(expected, nearest) {
        const typed = input.value.trim();
        input.setAttribute("aria-invalid", "true");
        wrong.get(key).replaceChildren(
          el("div", { class: "tool-message is-bad" }, el("p", {}, `Expected ${expected}${typed ? `, got '${typed.slice(0, 40)}'` : ""}.`),
            nearest.map((near) => button(`Take ${near}`, () => { input.value = shown(near); input.focus(); read(key); }))));
      },
    });
  }

  const group = (title, content) =>
    el("fieldset", { class: content.length === 2 || title === "Pipeline" || title.startsWith("Times") ? null : "lab-one" }, el("legend", {}, title), content);
  const [sizes, ...more] = FIELDS.map(([title, fields]) => group(title, fields.map(typed)));
  // On a phone, the picture comes before fields that are rarely changed.
  const folded = el("details", { class: "modeler-more", open: matchMedia("(min-width: 45em)").matches },
    el("summary", {}, "Times, memory, marks"), more,
    group("Show", [check("strips", "Memory strips"), check("path", "Critical path")]));
  const element = el("form", { class: "tool-form lab-form", "aria-label": "Configuration", on: { submit: (event) => event.preventDefault() } },
    group("Schedules", ["a", "b", "c"].map(choose)), sizes, folded);
  return {
    element,
    set: (partial) => {
      for (const [key, value] of Object.entries(partial)) {
        inputs.get(key).value = shown(value);
        inputs.get(key).removeAttribute("aria-invalid");
        wrong.get(key)?.replaceChildren();
      }
    },
  };
}

const shown = (value) => (value === null || value === undefined ? "" : String(value));
