// A job as the tools hand it to each other: a query in the modeler's keys. Other tools, whose keys
// mean something else, keep it in their address under `CARRIED`. The parts of it that every tool needs.

/** Sizes that the rank map and the modeler share. */
export const SIZES = ["nodes", "gpus", "tp", "cp", "ep", "etp", "pp"];

/** What an address carries for other tools, so that a reader who returns finds it unchanged. */
export const CARRIED = "m.";

/** Tells the line above the tool its job, as a query. */
export function tellJob(job) {
  const line = document.querySelector(".job-line");
  if (!line) return;
  line.dataset.job = job;
  line.dispatchEvent(new Event("job", { bubbles: true }));
}
