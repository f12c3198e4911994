// The modeler's form: controls from the table of fields, kept in step with the state.

import { InputError } from "../engine/errors.js";
import { el, button, field, selectField } from "./dom.js";
import { shortFirst, written } from "./modeler_fields.js";
import { onNodes } from "./modeler_hardware.js";
import { plainNumber } from "./quantities.js";
import { nearestNumber, readValue } from "./state.js";

const NARROW = "(max-width: 44.9em)";

/**
 * The form. `onChange(changes)` gets valid values, `onBad(key, message | null)` what cannot be
 * read. `sync(state, found, held)` shows a state; `found` is what the engine made of it, for what is
 * derived, `held` whether the global batch is kept. `groups` are those of the table if not given.
 */
export function modelerForm(schema, catalog, { onChange, onBad }, groups = shortFirst(catalog)) {
  const controls = new Map();
  const form = el("form", {
    class: "tool-form",
    "aria-label": "Configuration",
    on: { submit: (event) => event.preventDefault() },
  });
  const accept = (key, typed, input) => {
    try {
      const value = typed === "" && schema[key].fallback === null ? null : readValue(schema, key, typed);
      input.removeAttribute("aria-invalid");
      onBad(key, null);
      onChange({ [key]: value });
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      input.setAttribute("aria-invalid", "true");
      const near = nearestNumber(schema[key], typed);
      const offers = near === null ? [] : [[`${labelOf(groups, key)} ${plainNumber(near)}`, { [key]: near }]];
      onBad(key, `${labelOf(groups, key)}: ${messageOf(schema[key], typed)}`, offers);
    }
  };
  // Who brings a configuration sees all of it; who brings none begins with the job in short.
  const open = location.search.length > 1 && !matchMedia(NARROW).matches;
  const more = el("details", { class: "modeler-more modeler-all", open }, el("summary", {}, "All settings"));
  for (const group of groups) (group.rest ? more : form).append(groupBox(group, controls, accept, onChange));
  if (more.children[1]) form.append(more);
  return {
    form,
    sync(state, found, held) {
      sync(groups, controls, catalog, state, found);
      if (controls.has("hold")) controls.get("hold").input.checked = held;
    },
  };
}

const labelOf = (groups, key) => groups.flatMap(({ fields }) => fields).find((one) => one.key === key).label;
const messageOf = (kind, typed) => `expected ${kind.expected}${typed === "" ? "" : `, not “${typed.slice(0, 40)}”`}`;

// A group that is closed says what is in it; on a phone all but the first begin closed.
function groupBox({ title, open, always, nodes, fields }, controls, accept, onChange) {
  const made = fields.map((one) => {
    const control = controlOf(one, accept, onChange);
    controls.set(one.key, control);
    if (one.wide) control.box.classList.add("tool-wide");
    return control.box;
  });
  const said = el("small");
  controls.set(title, { said });
  return el(
    "details",
    { class: "modeler-more", open: always || (open && !matchMedia(NARROW).matches) },
    el("summary", {}, title, " ", said),
    el("fieldset", { "aria-label": title }, nodes ? nodeChips(nodes, controls, onChange) : null, made),
  );
}

// Nodes of the catalog, one press each; the layout stays, on as many GPUs as come nearest.
function nodeChips(nodes, controls, onChange) {
  const chips = nodes.map((one) =>
    button(one.label, () => onChange(onNodes(controls.get("nodes").state, one.changes)), {
      title: one.title,
      "data-node": one.name,
    }),
  );
  controls.get("nodes").chips = nodes.map(({ changes }, at) => [chips[at], changes]);
  return el("div", { class: "tool-chips tool-wide", role: "group", "aria-label": "Nodes of the catalog" }, chips);
}

function controlOf({ key, label, kind, options, hint, empty }, accept, onChange) {
  if (kind === "select") {
    const made = selectField(label, {
      name: key,
      value: "",
      options,
      hint,
      onChange: (value, input) => accept(key, value, input),
    });
    return { box: made.box, input: made.select };
  }
  if (kind === "check" || kind === "hold") {
    const input = el("input", {
      type: "checkbox",
      name: key,
      on: { change: () => onChange({ [key]: input.checked }) },
    });
    return { box: el("label", { class: "tool-check" }, input, label), input };
  }
  if (kind === "file") {
    const input = el("input", {
      type: "file",
      name: key,
      accept: ".json",
      on: { change: () => read(input.files[0]) },
    });
    const read = async (file) => {
      const text = await file?.text();
      if (file && file === input.files[0]) onChange({ [key]: text }); // else another was chosen meanwhile
    };
    const forget = button("Forget it", () => { input.value = ""; onChange({ [key]: "" }); });
    const box = field(label, input, hint);
    box.append(forget);
    return { box, input, forget };
  }
  if (kind === "derived") {
    const output = el("output", { class: "modeler-derived", name: key });
    return { box: field(label, output, hint), input: output };
  }
  const input = el("input", {
    type: "text",
    inputmode: kind === "number" ? "decimal" : "numeric",
    name: key,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: empty ?? null,
    on: {
      input: () =>
        kind === "batch" ? onChange({ global_batch: input.value }) : accept(key, input.value.trim(), input),
    },
  });
  if (kind !== "size") return { box: field(label, input, hint), input };
  // The buttons are shortcuts for the pointer: with keys one types, or presses the arrows.
  const scale = (factor) => () => {
    const next = Math.max(1, Math.floor(Number(input.value || input.placeholder || 1) * factor));
    input.value = String(next);
    accept(key, input.value, input);
  };
  input.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    input.value = String(Math.max(1, Number(input.value || input.placeholder || 1) + step));
    accept(key, input.value, input);
  });
  const box = field(label, input, hint);
  const row = el("div", { class: "tool-step" });
  input.replaceWith(row);
  row.append(
    button("÷2", scale(0.5), { "aria-label": `Halve ${label}, ÷2`, tabindex: "-1" }),
    input,
    button("×2", scale(2), { "aria-label": `Double ${label}, ×2`, tabindex: "-1" }),
  );
  return { box, input };
}

function sync(groups, controls, catalog, state, found) {
  for (const { title, says, fields } of groups) {
    for (const { key, kind, shows, derived } of fields) {
      const { box, input } = controls.get(key);
      box.hidden = shows ? !shows(state, catalog) : false;
      if (kind === "check") input.checked = state[key];
      else if (kind === "file") controls.get(key).forget.hidden = !state[key];
      else if (kind === "hold") continue;
      else if (kind === "derived") input.textContent = found.setup ? String(found.setup.parallel.dp) : "–";
      else if (kind === "batch") fill(input, found.setup ? String(found.setup.global_batch) : "");
      else {
        if (derived && found.setup) input.placeholder = String(derived(found.job));
        fill(input, written(state[key]));
      }
    }
    controls.get(title).said.textContent = says(state, found);
  }
  controls.get("nodes").state = state;
  for (const [chip, changes] of controls.get("nodes").chips ?? []) {
    const pressed = Object.entries(changes).every(([key, value]) => state[key] === value);
    chip.setAttribute("aria-pressed", String(pressed));
  }
}

// What somebody is typing is left as it is, unless it says something else.
function fill(input, value) {
  const typing = document.activeElement === input && input.tagName === "INPUT";
  if (typing && (input.getAttribute("aria-invalid") || Number(input.value) === Number(value))) return;
  // An address may say what no option offers.
  const offered = input.options === undefined || [...input.options].some((one) => one.value === value);
  if (!offered) input.append(el("option", { value }, value));
  if (input.value !== value) input.value = value;
  input.removeAttribute("aria-invalid");
}
