// The bandwidth and efficiency modeler: one or two configurations, from the address or the form;
// everything that is shown follows from them.

import { button, el, liveRegion, mountTool, perFrame } from "./dom.js";
import { fieldProblems, messages } from "./modeler_messages.js";
import { modelerForm } from "./modeler_form.js";
import { workedLines } from "./modeler_popover.js";
import { evaluate } from "./modeler_model.js";
import { results } from "./modeler_results.js";
import { FIRST, OWN, fromQuery, mapQuery, ofPreset, presetsOf, queryOf, schemaOf } from "./modeler_state.js";
import { presetGroups } from "./modeler_fields.js";
import { defaults, rewriteAddress } from "./state.js";
import { spoken } from "./modeler_answer.js";

/** Builds the tool in `root`. */
function build(root, signal, catalog) {
  const schema = schemaOf(catalog);
  const first = { ...defaults(schema), ...FIRST };
  let { a, b, problems } = fromQuery(schema, catalog, location.search);
  // What an address says and nobody can compute is refused, with what would work, for the defaults.
  const refused = [a, b]
    .map((state) => state && evaluate(catalog, state))
    .filter((one) => one?.error)
    .slice(0, 1);
  if (refused.length) [a, b] = [first, null];
  let [at, found] = [0, []];
  const states = () => (b ? [a, b] : [a]);
  const bad = fieldProblems();

  const change = (changes) => {
    problems = [];
    refused.length = 0;
    const next = { ...(at ? b : a), ...changes };
    if (at) b = next;
    else a = next;
    render();
  };
  const chooseSmall = (changes) => change({ ...first, ...changes, preset: "" });
  const choosePreset = (name) =>
    change(name ? { ...defaults(schema), ...ofPreset(catalog, name), preset: name } : { ...first, preset: "" });

  const isUntouched = (state) => queryOf(schema, catalog, state) === (state.preset && `preset=${state.preset}`);
  const publishedOf = (state) => (state.preset && isUntouched(state) ? catalog.presets[state.preset].published : null);

  const { region, say } = liveRegion();
  const form = modelerForm(schema, catalog, {
    onBad: (key, message, offers) => {
      bad.set(key, message, offers);
      showMessages();
    },
    onChange: (changes) => ("global_batch" in changes ? changeBatch(changes.global_batch) : change(changes)),
  });
  const changeBatch = (typed) => {
    const share = found[at].setup ? found[at].setup.parallel.dp * found[at].setup.microbatch_size : 1;
    const [problem, microbatches] = bad.batch(typed, share);
    showMessages();
    if (!problem) change({ microbatches });
  };
  const bar = topBar(catalog, {
    choosePreset,
    chooseSmall,
    compare,
    choose: (index) => {
      at = index;
      bad.clear();
      render();
    },
  });
  const brief = el("p", { class: "modeler-brief", "aria-hidden": "true" });
  form.form.append(brief);
  const said = el("div", { class: "modeler-messages" });
  const shown = results({
    signal,
    say,
    apply: change,
    evaluate: (state) => evaluate(catalog, state),
    catalog,
    mapQueryOf: (state) => mapQuery(schema, catalog, state),
  });
  root.replaceChildren(
    bar.element,
    el(
      "div",
      { class: "modeler-columns" },
      el("div", { class: "modeler-top" }, said, shown.answer),
      form.form,
      shown.details,
    ),
    region,
  );
  workedLines(root, shown.at, signal);

  function compare() {
    b = b ? null : { ...a };
    at = b ? 1 : 0;
    render();
  }

  function showMessages() {
    said.replaceChildren(
      ...messages({
        schema,
        found: found[at],
        refused,
        problems,
        bad,
        apply: change,
        evaluate: (state) => evaluate(catalog, state),
      }),
    );
  }

  const render = perFrame(() => !signal.aborted && renderNow());
  function renderNow() {
    found = states().map((state) => ({ ...evaluate(catalog, state), published: publishedOf(state) }));
    form.sync(states()[at], found[at]);
    bar.update(states(), at, isUntouched(states()[at]));
    showMessages();
    const query = queryOf(schema, catalog, a, b);
    const here = new URL(location.href);
    here.search = query;
    here.hash = "";
    shown.update(found, at, here.href);
    const told = found.map((one, index) => spoken(one, found.length > 1 ? index : null));
    brief.replaceChildren(...told.map((text) => el("span", {}, text)));
    say(told.join(" "));
    clearTimeout(waiting);
    // Browsers limit how often an address may be rewritten.
    waiting = setTimeout(() => rewriteAddress(query), 150);
  }
  let waiting = 0;
  signal.addEventListener("abort", () => clearTimeout(waiting));
  renderNow();
}

// Published runs that are a single press away; the list has them all.
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

// Presets, and which of two configurations the form is about.
function topBar(catalog, { choosePreset, chooseSmall, compare, choose }) {
  const presets = presetsOf(catalog);
  const own = el("option", { value: OWN, disabled: true }, "Your own configuration");
  const select = el(
    "select",
    { id: "modeler-preset", on: { change: () => choosePreset(select.value) } },
    own,
    el("option", { value: "" }, "First example: four stages, eight microbatches"),
    presetGroups(presets).map(([title, pairs]) =>
      el(
        "optgroup",
        { label: title },
        pairs.map(([name, text]) => el("option", { value: name }, text)),
      ),
    ),
  );
  const again = button("Reset", () => choosePreset(select.value === OWN ? "" : select.value));
  const second = button("Compare two", compare, { "aria-pressed": "false" });
  const which = ["A", "B"].map((name, index) =>
    button(`Edit ${name}`, () => choose(index), { "aria-pressed": "false" }),
  );
  const chips = SHORT.filter(([name]) => presets.some((one) => one.name === name)).map(([name, text]) =>
    button(text, () => choosePreset(name), { "data-preset": name }),
  );
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
      el("span", { class: "tool-actions", role: "group", "aria-label": "Which configuration the form edits" }, which),
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

mountTool("#modeler", build);
