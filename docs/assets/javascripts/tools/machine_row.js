// A reader's measured.json as the entry of the catalog that `figgen measured --row` prints, by its code.
// Nothing is sent anywhere.

import { measured_file } from "../catalog/measured_file.js";
import { InputError } from "../engine/errors.js";
import { machine_row } from "../scenarios/runs/machine_entry.js";
import { chip_among } from "../scenarios/runs/names.js";
import { button, el, field, liveRegion, mountTool, perFrame } from "./dom.js";
import { copyText, showCommand } from "./files.js";
import { readJson } from "./json.js";

/** What to paste into a pull request, for a file's text and its address. Throws InputError. */
export function rowOf(text, address, chips) {
  const file = measured_file(text, readJson);
  return machine_row(file, file.kind === "cuda" ? chip_among(file.device, chips) ?? "" : "", address.trim());
}

/** Builds the form in `root`; `chips` are the catalog's names of accelerators. */
function build(root, signal, { chips }) {
  const { region, say } = liveRegion();
  let text = "";
  const file = el("input", { type: "file", accept: ".json", on: { change: async () => { text = (await file.files[0]?.text()) ?? ""; show(); } } });
  const address = el("input", { type: "url", spellcheck: "false", placeholder: "https://github.com/you/cluster/blob/3f2a91c/measured.json", on: { input: perFrame(() => show()) } });
  const code = el("pre", { class: "tool-code", tabindex: "0", "aria-label": "Entry for the catalog", hidden: true });
  const copy = button("Copy", async () => say((await copyText(code.textContent)) ? "Copied" : "Select it and copy"), { hidden: true });
  const told = el("p", { role: "status" });
  function show() {
    let [row, problem] = ["", ""];
    try {
      if (text && address.value) row = rowOf(text, address.value, chips);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problem = `${error.message}.`;
    }
    showCommand(code, row);
    code.hidden = copy.hidden = !row;
    told.textContent = problem || (text && !address.value ? "Give the address at which you published the file." : "");
  }
  root.replaceChildren(
    field("Your measured.json", file, "it stays on this machine"),
    field("Its permanent address", address, "the source that the entry names"),
    told, code, el("div", { class: "tool-actions" }, copy), region);
}

mountTool("#machine-row", build);
