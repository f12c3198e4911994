// The line above every tool: the job in words, and links that open it in the other tools. A tool reports
// its job (`tellJob`); elsewhere it is read from the address or, on the journey, from the page.

import { addressOf } from "./job_addresses.js";
import { jobIn } from "./job_carried.js";

// Tools that have no keys of their own: any key of their address is a job's.
const WITHOUT_KEYS = ["profile", "measure", "verdict"];

const number = (value) => Number(value).toLocaleString("en-US");

/** A job in words: model · GPUs · batch · software, as far as it is known. */
export function wordsOf(job) {
  const [model, chip, nodes, batch, sequence, software] =
    ["model", "chip", "nodes", "global_batch", "sequence", "software"].map((key) => job.get(key));
  const gpus = number(nodes * (job.get("gpus") ?? 8));
  const [, kind] = /^([a-z]{1,3}\d+[a-z]?)-/.exec(chip) ?? []; // H200 of h200-sxm-141gb
  return [
    model === "own" ? "own model" : model,
    nodes && (chip ? `${gpus} × ${kind?.toUpperCase() ?? chip}` : `${gpus} ${gpus === "1" ? "GPU" : "GPUs"}`),
    batch && (sequence ? `${number(batch)} × ${number(sequence)} tokens` : `${number(batch)} sequences`),
    software,
  ].filter(Boolean);
}

function show(query = location.search) {
  const line = document.querySelector(".job-line");
  if (!line) return;
  const { tool, job: told, journey } = line.dataset;
  const job = told === undefined ? jobIn(query) : new URLSearchParams(told);
  if (journey && jobIn(query).size && !line.dataset.begun) followCluster(line);
  draw(line, job);
  if (told === undefined && WITHOUT_KEYS.includes(tool) && job.size > jobIn(query, true).size) complete(line, job, query);
}

// An address of the modeler leaves out what its preset and its defaults imply.
async function complete(line, given, query) {
  const { KEYS, recordOf } = await import("./address_job.js");
  if (![...given.keys()].some((key) => KEYS.has(key))) return;
  const { job, problems } = await recordOf(given);
  if (!problems.length && location.search === query && line.isConnected) draw(line, job);
}

function draw(line, job) {
  const { tool } = line.dataset;
  const [label, text] = line.querySelectorAll(".job-words > *");
  const words = wordsOf(job);
  label.textContent = words.length ? "Job" : "";
  text.textContent = words.join(" · ") || "Describe your job in the modeler or the planner, and it follows you to the other tools.";
  // Links to a tool with different jobs get different titles in tabs, bookmarks and the history.
  line.dataset.title ??= document.title;
  const jobs = tool && location.search && words.length ? `${words.join(" · ")} - ` : "";
  document.title = jobs + line.dataset.title;
  for (const link of line.querySelectorAll("a")) {
    const url = new URL(link.href);
    url.search = addressOf(link.dataset.tool, job);
    link.href = url.href;
  }
}

// A page of the journey is recomputed for the reader's cluster, by a script that is loaded for it.
async function followCluster(line) {
  line.dataset.begun = "1";
  (await import("./journey.js")).follow();
}

addEventListener("toggle", ({ target }) => {
  if (target.matches?.(".job-yours[open]")) followCluster(document.querySelector(".job-line"));
}, true);
addEventListener("job", () => show());
addEventListener("tool-address", ({ detail }) => show(detail.search));
addEventListener("popstate", () => show());
// The theme announces that a different page has replaced this one; it may load after this script.
const follow = () => window.document$?.subscribe(() => show());
if (window.document$) follow();
else addEventListener("load", follow, { once: true });
show();
