// Handles a job or a model that a reader brings to a tool that can't read it: names it, and links to
// tools that can, with the job in their address. Loaded when such a text is brought.

import { InputError } from "../engine/errors.js";
import { el } from "./dom.js";
import { addressOf, pipelineOf } from "./job_addresses.js";
import { modelFile } from "./model_file.js";
import { knownOf, takenRows, takeText, told } from "./taken.js";

const KEYS = {
  model: "model", accelerator: "chip", nodes: "nodes", gpus_per_node: "gpus", tp: "tp", cp: "cp", ep: "ep",
  etp: "etp", pp: "pp", chunks: "chunks", schedule: "schedule", sequence: "sequence",
  microbatch_size: "microbatch_size", microbatches: "microbatches", global_batch: "global_batch",
}; // options and their keys in the modeler's address
const TOOLS = { modeler: "modeler", planner: "planner", "rank-map": "rank map", schedules: "schedule lab" };

/** Elements about a text that is a job or a model; null for other texts. */
export function elsewhere(text) {
  let found;
  try {
    found = takeText(text, {}, modelFile);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return null;
  }
  if (found.shape) {
    const tools = [el("a", { href: "../modeler/" }, "modeler"), " or the ", el("a", { href: "../planner/" }, "planner")];
    return [told(takenRows(found)[0]), el("p", {}, "This is a model and no job. Bring it to the ", tools, ".")];
  }
  const known = knownOf(found);
  const job = new URLSearchParams(Object.entries(KEYS).filter(([name]) => name in known).map(([name, key]) => [key, known[name]]));
  if (job.has("global_batch")) job.delete("microbatches");
  const links = Object.entries(TOOLS)
    .map(([tool, title]) => [addressOf(tool, job), tool, title])
    .filter(([query, tool]) => query && (tool !== "schedules" || pipelineOf(job)))
    .flatMap(([query, tool, title], at) => [at ? ", the " : "the ", el("a", { href: `../${tool}/?${query}` }, title)]);
  const whole = "model" in found.taken ? "" : " Its model isn't in the catalog, so bring the text itself to the modeler.";
  return [told(takenRows(found)[0]), el("p", {}, "This is a job. Open its sizes in ", links, `.${whole}`)];
}
