// The bar above the modeler's form: starting points, and which of two configurations is edited.

import { button, el } from "./dom.js";
import { presetGroups } from "./modeler_fields.js";
import { FIRST, OWN, presetsOf } from "./modeler_state.js";

// Published runs that are one press away; the list has all of them.
const SHORT = [
  ["gpt-3-175b", "GPT-3 175B"],
  ["llama-3-405b-8k-16384", "Llama 3 405B"],
  ["deepseek-v3", "DeepSeek-V3"],
  ["nemotron-4-340b", "Nemotron-4 340B"],
  ["llama-3-8b-fsdp", "Llama 3 8B, FSDP"],
];

// The textbook's pipelines: P stages, M microbatches.
const SMALL = [
  ["P = 4, M = 8", {}],
  ["P = 4, M = 16", { microbatches: 16 }],
  ["P = 3, M = 8", { pp: 3 }],
];

/** Returns { element, update(states, at, untouched) }; `at` is the edited configuration. */
export function topBar(catalog, { choosePreset, chooseSmall, compare, choose }) {
  const own = el("option", { value: OWN, disabled: true }, "Your own configuration");
  const select = el(
    "select",
    { id: "modeler-preset", on: { change: () => choosePreset(select.value) } },
    own,
    el("option", { value: "" }, "Example: four stages, eight microbatches"),
    presetGroups(presetsOf(catalog)).map(([title, pairs]) =>
      el(
        "optgroup",
        { label: title },
        pairs.map(([name, text]) => el("option", { value: name }, text)),
      ),
    ),
  );
  const again = button("Reset", () => choosePreset(select.value === OWN ? "" : select.value));
  const second = button("Compare two", compare);
  const which = ["A", "B"].map((name, index) => button(`Edit ${name}`, () => choose(index)));
  const chips = SHORT.map(([name, text]) => button(text, () => choosePreset(name), { "data-preset": name }));
  const small = SMALL.map(([text, changes]) => button(text, () => chooseSmall(changes), { "data-small": text }));
  const element = el(
    "div",
    { class: "modeler-bar" },
    el("div", { class: "tool-field" }, el("label", { for: "modeler-preset" }, "Start from"), select),
    el(
      "div",
      { class: "tool-actions" },
      again,
      second,
      el("a", { class: "tool-button", href: "#launch" }, "Write its launch file"),
      el("span", { class: "tool-actions", role: "group", "aria-label": "Edited configuration" }, which),
    ),
    chipGroup("Small pipelines", small),
    chipGroup("Published runs", chips),
  );
  return {
    element,
    update(states, at, untouched) {
      own.hidden = Boolean(states[at].preset) || untouched;
      select.value = own.hidden ? states[at].preset : OWN;
      again.disabled = untouched;
      for (const one of chips) one.setAttribute("aria-pressed", String(one.dataset.preset === states[at].preset));
      small.forEach((one, index) => {
        const is = !states[at].preset && matches(states[at], { ...FIRST, ...SMALL[index][1] });
        one.setAttribute("aria-pressed", String(is));
      });
      const both = states.length > 1;
      second.setAttribute("aria-pressed", String(both));
      which.forEach((one, index) => {
        one.hidden = !both;
        one.setAttribute("aria-pressed", String(index === at));
      });
    },
  };
}

const chipGroup = (name, chips) =>
  el("div", { class: "tool-chips", role: "group", "aria-label": name }, el("span", {}, `${name}:`), chips);

const matches = (state, sizes) => Object.entries(sizes).every(([key, value]) => state[key] === value);
