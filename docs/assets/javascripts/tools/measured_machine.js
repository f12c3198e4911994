// A reader's measured.json as the entry of the catalog that `figgen measured --row` prints, by its code.
// Nothing is sent anywhere.

import { measured_file } from "../catalog/measured_file.js";
import { machine_row } from "../scenarios/runs/machine_entry.js";
import { chip_among } from "../scenarios/runs/names.js";
import { el, field, mountTool } from "./dom.js";
import { readJson } from "./json.js";
import { rowForm } from "./row_form.js";

/** What to paste into a pull request, for a file's text and its address. Throws InputError. */
export function rowOf(text, address, chips) {
  const file = measured_file(text, readJson);
  return machine_row(file, file.kind === "cuda" ? chip_among(file.device, chips) ?? "" : "", address);
}

/** Builds the form in `root`; `chips` are the catalog's names of accelerators. */
function build(root, signal, { chips }) {
  let text = "";
  const example = "https://github.com/you/cluster/blob/3f2a91c/measured.json";
  const { nodes, show } = rowForm("the file", example, () => text, (address) => rowOf(text, address, chips));
  const file = el("input", { type: "file", accept: ".json", on: { change: async () => { text = (await file.files[0]?.text()) ?? ""; show(); } } });
  root.replaceChildren(field("Your measured.json", file, "it stays on this machine"), ...nodes);
}

mountTool("#machine-row", build);
