// The modeler's form: controls from the table of fields, kept in step with the state.

import { el, button, field, selectField } from "./dom.js";
import { shortFirst, written } from "./modeler_fields.js";
import { onNodes } from "./modeler_hardware.js";
import { plainNumber } from "./quantities.js";
import { batch, number, optional, readTyped } from "./state.js";

const NARROW = "(max-width: 44.9em)";

// Maps each field to the value parsed from its text.
const accepted = new WeakMap();

/**
 * The form. `onChange(changes)` gets valid values, `onBad(key, message | null)` values that cannot be
 * parsed. `sync(state, found, held)` shows a state; `found` is the engine's result, for derived values,
 * `held` the global batch that is kept, if any, `hold` whether one is, and `refused` whether the typed one
 * was refused: it stays, and is read again with each sequence and layout. `shareOf(state)` is the number
 * of sequences in one microbatch of all replicas. `groups` are by default those of the table.
 */
export function modelerForm(kinds, catalog, { onChange, onBad, shareOf = () => 1 }, groups = shortFirst(catalog)) {
  const controls = new Map();
  const schema = { global_batch: batch(), step_time: { ...optional(number(null, 1e-6, 1e7)), unit: "s" }, ...kinds };
  const ofBatch = (state) => ({ sequence: state.sequence ?? catalog.models[state.model]?.sequence ?? 8192, share: shareOf(state) });
  const form = el("form", {
    class: "tool-form",
    "aria-label": "Configuration",
    on: { submit: (event) => event.preventDefault() },
  });
  const accept = (key, input) => {
    readTyped(schema, key, input, {
      batch: key === "global_batch" ? ofBatch(controls.get("nodes").state) : null,
      onValue(value) {
        input.removeAttribute("aria-invalid");
        accepted.set(input, value);
        onBad(key, null);
        onChange({ [key]: value });
      },
      onBad(expected, nearest) {
        const typed = input.value.trim(), { label } = controls.get(key);
        input.setAttribute("aria-invalid", "true");
        onBad(key, `${label}: expected ${expected}${typed === "" ? "" : `, not “${typed.slice(0, 40)}”`}`,
          nearest.map((near) => [`${label} ${plainNumber(near)}`, { [key]: near }]));
      },
    });
  };
  // Readers with a configuration see all of it; others start with a short form.
  const open = location.search.length > 1 && !matchMedia(NARROW).matches;
  const more = el("details", { class: "modeler-more modeler-all", open }, el("summary", {}, "All settings"));
  for (const group of groups) (group.rest ? more : form).append(groupBox(group, controls, accept, onChange));
  if (more.children[1]) form.append(more);
  return {
    form,
    sync(state, found, held = null, hold = false, refused = false) {
      const { input } = controls.get("global_batch");
      const typed = refused && input.getAttribute("aria-invalid") && input.value;
      sync(groups, controls, catalog, state, found, held, hold);
      if (typed) {
        input.value = typed;
        accept("global_batch", input);
      }
    },
  };
}

// A closed group summarizes its contents; on a phone, all but the first start closed.
function groupBox({ title, open, always, nodes, fields }, controls, accept, onChange) {
  const made = fields.map((one) => {
    const control = controlOf(one, accept, onChange);
    controls.set(one.key, { ...control, label: one.label });
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

// Nodes of the catalog, one press each; the layout is kept, on the nearest possible number of GPUs.
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
      onChange: (value, input) => accept(key, input),
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
      if (file && file === input.files[0]) onChange({ [key]: text }); // else a different file was chosen meanwhile
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
    inputmode: kind === "number" || kind === "step" ? "decimal" : "numeric",
    name: key,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: empty ?? null,
    on: {
      input: () => accept(key, input),
      // Text that was typed in a different form than shown stays until its reader leaves the field.
      blur: () => { if (accepted.has(input) && !input.getAttribute("aria-invalid")) input.value = written(accepted.get(input)); },
    },
  });
  if (kind !== "size") return { box: field(label, input, hint), input };
  // The buttons are shortcuts for the pointer; with the keyboard one types or presses the arrows.
  const scale = (factor) => () => {
    const next = Math.max(1, Math.floor(Number(input.value || input.placeholder || 1) * factor));
    input.value = String(next);
    accept(key, input);
  };
  input.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    input.value = String(Math.max(1, Number(input.value || input.placeholder || 1) + step));
    accept(key, input);
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

function sync(groups, controls, catalog, state, found, held, hold) {
  for (const { title, says, fields } of groups) {
    for (const { key, kind, shows, derived } of fields) {
      const { box, input } = controls.get(key);
      box.hidden = shows ? !shows(state, catalog) : false;
      if (kind === "check") input.checked = state[key];
      else if (kind === "file") controls.get(key).forget.hidden = !state[key];
      else if (kind === "hold") input.checked = hold;
      else if (kind === "derived") input.textContent = found.setup ? String(found.setup.parallel.dp) : "–";
      else if (kind === "step") { if (found.step) fill(input, state.factor === null ? "" : written(Number(stepOf(found).toPrecision(6)))); }
      else if (kind === "batch") fill(input, written(found.setup ? found.setup.global_batch : held));
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

/** Seconds of a step as a reader measures it, with Muon's matmuls. */
export const stepOf = ({ step }) => step.step_and_orthogonalising_s ?? step.step_time_s;

// Text that is being typed is left alone, unless it means something else.
function fill(input, value) {
  const typing = document.activeElement === input && input.tagName === "INPUT";
  if (typing && (input.getAttribute("aria-invalid") || Number(input.value) === Number(value) || written(accepted.get(input)) === value)) return;
  accepted.delete(input);
  // An address may contain values that no option offers.
  const offered = input.options === undefined || [...input.options].some((one) => one.value === value);
  if (!offered) input.append(el("option", { value }, value));
  if (input.value !== value) input.value = value;
  input.removeAttribute("aria-invalid");
}
