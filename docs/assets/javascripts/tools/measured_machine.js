// What a reader's measured.json says, next to the datasheet and to another such machine; its rates
// in the addresses of the tools that compute with them; and the entry of the catalog that
// `figgen measured --row` prints. Nothing is sent anywhere.

import { measured_file } from "../catalog/measured_file.js";
import { InputError } from "../engine/errors.js";
import { mapped } from "../engine/records.js";
import { machine_rows, machine_sentence } from "../scenarios/runs/machine_answer.js";
import { machine_row } from "../scenarios/runs/machine_entry.js";
import { rates_of } from "../scenarios/runs/machine_rates.js";
import { chip_among } from "../scenarios/runs/names.js";
import { el, field, mountTool } from "./dom.js";
import { addressOf } from "./job_addresses.js";
import { jobIn } from "./job_carried.js";
import { readJson } from "./json.js";
import { rowForm } from "./row_form.js";

const EXAMPLE = "https://github.com/you/cluster/blob/3f2a91c/measured.json";

const table = ([head, ...rows]) =>
  el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": "Rates of your machine" },
    el("table", { class: "tool-table" },
      el("thead", {}, el("tr", {}, head.map((text, at) => el("th", { scope: "col", class: at && "num" }, text)))),
      el("tbody", {}, rows.map(([name, ...rest]) => el("tr", {}, el("th", { scope: "row" }, name), rest.map((text) => el("td", { class: "num" }, text)))))));

/** What the page shows of a file's text: { sentence, nodes, row(address) }. Throws InputError. */
function readMachine(text, chips) {
  const file = measured_file(text, readJson);
  const chip = (file.kind === "cuda" && chip_among(file.device, Object.keys(chips))) || "";
  const rates = rates_of(file);
  const sheet = chip ? { ...chips[chip], flops: mapped(chips[chip].flops), other: mapped(chips[chip].other) } : null;
  const job = jobIn(location.search);
  if (chip) job.set("chip", chip);
  job.set("measured", rates.text);
  const link = (tool) => el("a", { href: `../${tool}/?${addressOf(tool, job)}` }, tool);
  return {
    sentence: machine_sentence(file.device, rates.known, sheet),
    nodes: [table(machine_rows(rates.known, sheet)), el("p", {}, "Compute with these rates in the ", link("modeler"), " or the ", link("planner"), ".")],
    row: (address) => machine_row(file, chip, address),
  };
}

/** Builds the tool in `root`; `chips` are the datasheets by the catalog's names. */
function build(root, signal, { chips }) {
  let found = null;
  const said = el("p", { class: "tool-sentence", role: "status" });
  const shown = el("div", { class: "tool-answer" });
  const { nodes, show } = rowForm("the file", EXAMPLE, () => found, (address) => found.row(address));
  const entry = el("details", { class: "tool-asked", hidden: true }, el("summary", {}, "Add your machine to the catalog"), ...nodes);
  const file = el("input", { type: "file", accept: ".json", on: { change: () => open(file.files[0]) } });
  async function open(given) {
    if (!given) return;
    try {
      found = readMachine(await given.text(), chips);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      found = { sentence: `${given.name}: ${error.message}.`, nodes: [] };
    }
    said.textContent = found.sentence;
    shown.replaceChildren(...found.nodes);
    entry.hidden = !found.row;
    root.scrollIntoView({ block: "nearest" });
    if (found.row) show();
  }
  addEventListener("dragover", (event) => event.preventDefault(), { signal });
  addEventListener("drop", (event) => {
    event.preventDefault();
    open(event.dataTransfer.files[0]);
  }, { signal });
  root.replaceChildren(field("Your measured.json", file, "drop it anywhere on this page or choose it; it stays on this machine"), said, shown, entry);
}

mountTool("#measured-machine", build);
