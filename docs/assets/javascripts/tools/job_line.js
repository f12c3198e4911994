// The line above every tool: the job in words, and links that open it in the other tools. A tool reports
// its job (`tellJob`); elsewhere it is read from the address or, on the journey, from the page.

import { addressOf, pipelineOf } from "./job_addresses.js";
import { jobIn } from "./job_carried.js";

/** The job of a tool's address, with the current settings of the schedule lab. */
export function jobOf(tool, query) {
  const job = jobIn(query);
  const before = tool === "schedules" && pipelineOf(job);
  if (!before) return job;
  const now = new URLSearchParams(query);
  const [stages, microbatches] = [["stages", 4], ["microbatches", 8]].map(([key, usual]) => Number(now.get(key) ?? usual));
  const [schedule, chunks] = [now.get("a") ?? "1f1b", now.get("chunks")];
  if (stages !== before.stages || microbatches !== before.microbatches) {
    const share = (before.share * before.stages) / stages;
    job.delete("microbatches");
    if (Number.isInteger(share)) job.set("global_batch", share * microbatches);
    job.set("pp", stages);
  }
  if (schedule !== before.a) job.set("schedule", schedule);
  if (chunks) job.set("chunks", chunks);
  return job;
}

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
  if (journey && jobIn(query).size && !line.dataset.begun) followCluster(line);
  const job = told ? new URLSearchParams(told) : jobOf(tool, query);
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
