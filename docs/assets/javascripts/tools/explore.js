// Explore with controls for a figure's own parameters: the printed code of its function and of its
// Plotly drawing recomputes it after every change. Loaded when a reader explores such a figure.

import { InputError } from "../engine/errors.js";
import { load } from "./explored.js";
import { choicesOf, isLong, readChoice, readParameter, readSearched, shownChoices, shownParameter } from "./explore_parameters.js";
import { redrawn } from "./explore_drawn.js";
import { el, field } from "./dom.js";

/** The figure of that name: `compute` with its parameters in order, and `lookups` of names by parameter. */
export const explored = (name) => load[name]();

/** The figure for other values: { data, layout } of Plotly. Throws InputError. */
export const recomputed = ({ compute }, values) => redrawn(compute(...values));

/** A form for the parameters of a figure, as described in its file; `show` draws the result. */
export async function begin({ figure, parameters }, show) {
  const found = await explored(figure);
  const values = parameters.map(({ value }) => value);
  const told = el("p", { class: "fig-told", role: "status" });
  const inputs = [], unread = new Set();
  const change = (at, input, read) => {
    unread.add(input);
    try {
      values[at] = read();
      unread.delete(input);
      show(recomputed(found, values));
      // A value that was refused next to another may be valid next to this one.
      for (const one of inputs) one.setAttribute("aria-invalid", String(unread.has(one)));
      told.textContent = "Computed again for these values; the caption describes the published ones.";
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      input.setAttribute("aria-invalid", "true");
      told.textContent = error.message;
    }
  };
  const fields = parameters.flatMap((parameter, at) => {
    if (!parameter.kind) return [];
    const choices = choicesOf(parameter, found.lookups);
    const searched = choices && isLong(choices);
    const input = searched ? searchOf(parameter, choices) : choices ? selectOf(parameter, choices)
      : el("input", { name: parameter.name, value: shownParameter(parameter), spellcheck: "false", autocomplete: "off" });
    const read = searched ? () => readSearched(parameter, choices, input.value) : choices ? () => readChoice(parameter, choices, [...input.selectedOptions].map(({ index }) => index))
      : () => readParameter(parameter, input.value);
    inputs.push(input);
    input.addEventListener("change", () => change(at, input, read));
    const titles = searched && titlesOf(parameter, choices, input);
    const hint = searched ? `type to search ${choices.length}${parameter.list ? "; separate with ;" : ""}` : null;
    return [field(labelOf(parameter.name), input, hint), ...(titles ? [titles] : [])];
  });
  return el("form", { class: "fig-parameters", on: { submit: (event) => event.preventDefault() } }, fields, told);
}

const labelOf = (name) => name.replace(/_bytes_per_s$|_flops_per_s$|_bytes$|_s$/, "").replaceAll("_", " ");

let lists = 0;

// A field with the browser's own search among the titles.
function searchOf(parameter, choices) {
  const input = el("input", { name: parameter.name, value: shownChoices(parameter, choices), spellcheck: "false", autocomplete: "off", class: "fig-search" });
  input.setAttribute("list", `fig-names-${++lists}`);
  return input;
}

// For lists, suggestions begin with the titles already typed, as the browser compares whole values.
function titlesOf({ list }, choices, input) {
  const titles = el("datalist", { id: input.getAttribute("list") });
  const fill = () => {
    const before = list ? input.value.replace(/[^;]*$/, "") : "";
    titles.replaceChildren(...choices.map(([, words]) => new Option("", `${before}${before && " "}${words}`)));
  };
  fill();
  input.addEventListener("input", fill);
  // A full title matches only itself, so it is selected and typing replaces it.
  input.addEventListener("focus", () => { if (!list) input.select(); });
  return titles;
}

function selectOf({ name, value, list }, choices) {
  const chosen = [value].flat();
  const select = el("select", { name, multiple: list, size: list ? Math.min(choices.length, 5) : null });
  select.append(...choices.map(([one, words]) => new Option(words, String(one), false, chosen.includes(one))));
  return select;
}
