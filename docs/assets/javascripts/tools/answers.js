// A field for the answer to a question on a page, graded by the formula that the page names. The question
// can be repeated with other numbers. Loaded when a reader enters the field; nothing is stored.

import { workedLine } from "../engine/worked.js";
import { expected_of } from "../scenarios/tools/graded.js";
import { argumentsOf, callOf, verdictOn } from "./answers_model.js";
import { el } from "./dom.js";

const begun = new WeakMap();

/** Grades the answer in a form that the reader entered or submitted. */
export function begin(form, event) {
  if (!begun.has(form)) begun.set(form, made(form));
  if (event.type === "submit") begun.get(form)(event.submitter?.value ?? "check");
}

function made(form) {
  const asked = JSON.parse(form.dataset.ask);
  const input = form.querySelector("input");
  const [given, told] = [form.querySelector("em"), form.querySelector(".fig-verdict")];
  let [at, tries] = [-1, 0];
  const show = (words, state) => {
    form.dataset.verdict = state;
    told.textContent = words;
  };
  const check = async () => {
    if (!input.value.trim()) return show(`Type ${expected_of(asked.unit)}.`, "none");
    const call = callOf(asked, form.dataset.yours, at);
    const { right, words } = verdictOn(asked, call, input.value);
    tries += !right;
    input.setAttribute("aria-invalid", String(!right));
    show(words, right ? "right" : "wrong");
    if (!right && tries < 2) return;
    const { notes } = await import("../formula-notes.js");
    if (!told.textContent.startsWith(words) || !Array.isArray(call)) return;
    const line = workedLine(notes, call[0], argumentsOf(call), asked.spec);
    told.append(" ", el("span", { class: "fig-worked" }, `${line.symbol} = ${line.symbols}${right ? ` = ${line.text}` : ""}`));
  };
  const other = () => {
    at = (at + 1) % asked.cases.length;
    tries = 0;
    input.value = "";
    input.removeAttribute("aria-invalid");
    given.textContent = ` Now with ${asked.cases[at][1]}; everything else as above.`;
    show("", "none");
    input.focus();
  };
  return (act) => (act === "other" ? other() : check());
}
