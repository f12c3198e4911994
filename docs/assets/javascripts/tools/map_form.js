// The input of the rank map: preset, cluster, sizes of the axes, rank order, and messages
// about them. `change(partial)` receives a reader's changes; `update` shows a state.

import { button, el, field, selectField } from "./dom.js";
import { convention } from "../models/machine/frameworks.js";
import { MOST_RANKS } from "../models/machine/layout.js";
import { movedSentence } from "./map_groups.js";
import { readTyped } from "./state.js";
import { ORDERS, applied, changesOf, ofPreset } from "./map_state.js";

const NODES = [1, 2, 4, 8, 16, 32, 64];
const GPUS = [1, 2, 4, 8, 72];
const OWN = "own"; // the entry of the order selector for a typed order

const SIZES = [
  ["nodes", "Nodes"],
  ["gpus", "GPUs per node"],
  ["tp", "TP, tensor"],
  ["cp", "CP, context"],
  ["pp", "PP, pipeline"],
  ["dp", "DP, data"],
  ["ep", "EP, experts"],
  ["etp", "ETP, tensor"],
];

/** Returns { element, start, update(state, result) }; `start` is the list of presets, which needs space. */
export function makeForm(layouts, schema, change) {
  const inputs = new Map();
  const wrong = el("p", { class: "tool-message is-bad", role: "alert" });

  // Marks a field and says what it expects; nothing if it is right.
  const tell = (input, label, expected) => {
    input.setAttribute("aria-invalid", String(!!expected));
    wrong.textContent = expected ? `${label}: expected ${expected}, got '${input.value.slice(0, 40)}'.` : "";
  };
  const typed = (key, input, label) => {
    readTyped(schema, key, input, {
      onValue(value) {
        tell(input);
        change({ [key]: value });
      },
      onBad: (expected) => tell(input, label, expected),
    });
  };
  const size = (key, label) => {
    const input = el("input", {
      type: "text",
      name: key,
      inputmode: "numeric",
      autocomplete: "off",
      on: { input: () => typed(key, input, label) },
    });
    inputs.set(key, input);
    const box = field(label, input);
    if (key === "dp" || key === "etp") return box;
    const times = (factor) => () => {
      const now = Number(input.value) || 1;
      input.value = Math.min(MOST_RANKS, Math.max(1, Math.floor(now * factor)));
      typed(key, input, label);
    };
    const step = el(
      "div",
      { class: "tool-step" },
      button("÷2", times(0.5), { "aria-label": `Halve ${label}, ÷2` }),
      button("×2", times(2), { "aria-label": `Double ${label}, ×2` }),
    );
    input.replaceWith(step);
    step.firstChild.after(input);
    return box;
  };
  const fields = new Map(SIZES.map(([key, label]) => [key, size(key, label)]));
  const chips = (key, values) =>
    el(
      "div",
      {
        class: "tool-chips tool-wide",
        role: "group",
        "aria-label": `Usual: ${key === "gpus" ? "GPUs per node" : key}`,
      },
      values.map((value) =>
        button(String(value), () => change({ [key]: value }), { "data-value": value }),
      ),
    );
  const [nodeChips, gpuChips] = [chips("nodes", NODES), chips("gpus", GPUS)];

  const preset = selectField("Preset", {
    name: "preset",
    value: "",
    onChange: (name) => {
      const found = layouts.find((one) => one.name === name);
      if (found) change({ ...ofPreset(found), dp: null, preset: name, rank: null, group: null });
    },
    options: [
      ["", "Own configuration"],
      ...[
        ["map", "Rank maps"],
        ["training", "Published runs"],
      ].map(([kind, title]) => [
        title,
        layouts.filter((one) => one.kind === kind).map(({ name, title: text }) => [name, text]),
      ]),
    ],
  });

  const order = selectField("Rank order, fastest axis first", {
    name: "order",
    value: "megatron",
    options: [...ORDERS, [OWN, "Another order …"]],
    onChange: (name) => {
      own.hidden = name !== OWN;
      if (name !== OWN) change({ order: name });
      else ownInput.focus();
    },
  });
  const ownInput = el("input", {
    name: "own-order",
    placeholder: "tp-cp-ep-dp-pp",
    autocomplete: "off",
    spellcheck: "false",
    on: {
      input: () => {
        try {
          convention(ownInput.value.trim());
          tell(ownInput);
          change({ order: ownInput.value.trim() });
        } catch {
          tell(ownInput, "Order", "axes such as tp-cp-ep-dp-pp");
        }
      },
    },
  });
  const own = el("div", { class: "tool-wide" }, field("Axes, fastest first", ownInput));
  own.hidden = true;
  const moves = el("p", { class: "map-moves tool-wide" });
  const mark = el("input", {
    type: "checkbox",
    name: "moved",
    on: { change: () => change({ moved: mark.checked }) },
  });
  const markBox = el("label", { class: "tool-check tool-wide" }, mark, "Mark ranks that moved");
  order.box.classList.add("tool-wide");

  const set = (title, ...parts) => el("fieldset", {}, el("legend", {}, title), parts);
  const axes = (title, keys) =>
    el(
      "fieldset",
      { class: "map-axes" },
      el("legend", {}, title),
      keys.map((key) => fields.get(key)),
    );
  const element = el(
    "form",
    {
      class: "tool-form map-form",
      "aria-label": "Configuration",
      on: { submit: (event) => event.preventDefault() },
    },
    wrong,
    set("Cluster", fields.get("nodes"), fields.get("gpus"), nodeChips, gpuChips),
    axes("Parallelism", ["tp", "cp", "pp", "dp"]),
    axes("Experts", ["ep", "etp"]),
    set("Order", order.box, own, moves, markBox),
  );

  function update(state, { parallel, moved }) {
    for (const [key, input] of inputs) {
      const value = key === "dp" ? (state.dp ?? "") : (state[key] ?? "");
      // A field that is being edited keeps its text, including keys typed before the next frame.
      const typing = input === document.activeElement;
      if (typing && (input.ariaInvalid === "true" || Number(input.value) === Number(value))) continue;
      input.value = value;
      input.setAttribute("aria-invalid", "false");
    }
    if (!element.querySelector("[aria-invalid=true]")) wrong.textContent = "";
    if (parallel) {
      for (const key of ["dp", "etp"]) inputs.get(key).placeholder = `${parallel[key]} (auto)`;
      if (inputs.get("dp") !== document.activeElement) inputs.get("dp").value = parallel.dp;
    }
    preset.select.value = state.preset;
    const listed = ORDERS.some(([name]) => name === state.order);
    order.select.value = listed ? state.order : OWN;
    if (!listed) {
      own.hidden = false;
      if (ownInput !== document.activeElement) ownInput.value = state.order;
    } else if (ownInput !== document.activeElement) own.hidden = true;
    for (const [key, box] of Object.entries({ nodes: nodeChips, gpus: gpuChips })) {
      for (const chip of box.children)
        chip.setAttribute("aria-pressed", String(Number(chip.dataset.value) === state[key]));
    }
    mark.checked = state.moved;
    markBox.hidden = !(parallel && moved.count);
    moves.textContent = parallel ? movedSentence(parallel, moved) : "";
    moves.hidden = !parallel || (!moved.count && state.order === "megatron");
  }
  return { element, start: el("div", { class: "map-start" }, preset.box), update };
}

/** Messages about the input, as { problems, errors, warnings }; the error has suggestions. */
export function messagesOf(state, { error, warnings }, problems, change) {
  const message = (kind, text, ...more) =>
    el("div", { class: `tool-message is-${kind}` }, el("p", {}, text), more);
  const errors = [];
  if (error) {
    const ways = error.nearest
      .filter((text) => /^(\w+=\d+ ?)+$/.test(text))
      .map((text) =>
        button(changesOf(state, text), () => change({ ...applied(state, text), preset: "" }), {
          "data-nearest": text,
        }),
      );
    const told = error.message.replace(/ \(did you mean .*\?\)$/, "");
    errors.push(
      message(
        "bad",
        `${told}.`,
        ways.length
          ? el("div", { class: "tool-actions" }, el("span", {}, "Nearest that fit:"), ways)
          : null,
      ),
    );
  }
  return {
    problems: problems.map((text) => message("warning", `In the address, ${text}. The default is used instead.`)),
    errors,
    warnings: (warnings ?? []).map((text) => message("warning", `${text}.`)),
  };
}
