// A form for an entry of the catalog, to paste into a pull request. Nothing is sent anywhere.

import { InputError } from "../engine/errors.js";
import { button, el, field, liveRegion, perFrame } from "./dom.js";
import { copyText, showCommand } from "./files.js";

/**
 * { nodes, show }: a field for the address of `what` is published, and the entry; `rowOf(address)` returns
 * its text or throws InputError, once `isReady()`.
 */
export function rowForm(what, placeholder, isReady, rowOf) {
  const { region, say } = liveRegion();
  const address = el("input", { type: "url", spellcheck: "false", placeholder, on: { input: perFrame(() => show()) } });
  const code = el("pre", { class: "tool-code", tabindex: "0", "aria-label": "Entry for the catalog", hidden: true });
  const copy = button("Copy", async () => say((await copyText(code.textContent)) ? "Copied" : "Select it and copy"), { hidden: true });
  const told = el("p", { role: "status" });
  function show() {
    let [row, problem] = ["", ""];
    try {
      if (isReady()) [row, problem] = address.value ? [rowOf(address.value.trim()), ""] : ["", `Give the address at which you published ${what}.`];
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problem = `${error.message}.`;
    }
    showCommand(code, row);
    code.hidden = copy.hidden = !row;
    told.textContent = problem;
  }
  return { nodes: [field("Its permanent address", address, "the source that the entry names"), told, code, el("div", { class: "tool-actions" }, copy), region], show };
}
