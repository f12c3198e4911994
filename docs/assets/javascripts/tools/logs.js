// What a pasted log says: a table of nccl-tests, step lines of training, or PyTorch's out-of-memory
// message, with the command line's reader. Loaded when a text is pasted.

import { grouped } from "../engine/errors.js";
import { read_log } from "../scenarios/taking/logs.js";
import { el } from "./dom.js";
import { bytes, percent, plainNumber, quantity, seconds } from "./quantities.js";

const told = ([kind, sentence]) => el("div", { class: `tool-message is-${kind}` }, el("p", {}, sentence));
const rate = (value) => quantity(value, "B/s");

/** What a text says that is a log: { log, shown }, elements for the page; null for another text. */
export function readLog(text) {
  const log = read_log(text);
  if (!log) return null;
  const [rows, more] = log.rows ? [collectiveRows(log), collectiveTable(log)]
    : log.asked_bytes ? [memoryRows(log), null] : [stepRows(log), null];
  return { log, shown: [...rows.map(told), ...(more ? [more] : [])] };
}

function collectiveRows(log) {
  const [latency, slope] = log.fit;
  const largest = log.rows.at(-1);
  const half = log.rows.find((row) => row.bus_bandwidth >= 0.5 * best(log));
  const ranks = log.ranks ? ` of ${grouped(log.ranks)} ranks` : "";
  return [
    ["plain", `Read as nccl-tests: ${log.collective || "a collective that the text does not name"}${ranks}, ${log.rows.length} sizes.`],
    ["plain", `The largest message, ${bytes(largest.message_bytes)}, took ${seconds(largest.time_s)}: algbw ${rate(largest.algorithm_bandwidth)}, busbw ${rate(largest.bus_bandwidth)}.`],
    ["plain", `The latency α is ${seconds(latency)}; beyond that, a message moves at ${rate(slope)}. From ${bytes(half.message_bytes)} on, busbw is at least half of its best.`],
  ];
}

const best = ({ rows }) => Math.max(...rows.map((row) => row.bus_bandwidth));

function collectiveTable(log) {
  const heads = ["Message", "Time", "algbw", "busbw", "of the best"].map((head) => el("th", { scope: "col", class: "num" }, head));
  const line = (row) => [bytes(row.message_bytes), seconds(row.time_s), rate(row.algorithm_bandwidth), rate(row.bus_bandwidth), percent(row.bus_bandwidth / best(log), 0)];
  return el("div", { class: "tool-scroll", tabindex: 0, role: "group", "aria-label": "Sizes in the log" },
    el("table", { class: "tool-table" }, el("thead", {}, el("tr", {}, heads)),
      el("tbody", {}, log.rows.map((row) => el("tr", {}, line(row).map((text) => el("td", { class: "num" }, text)))))));
}

function stepRows(log) {
  const facts = [
    log.step_time_s && `${seconds(log.step_time_s)} a step`,
    log.tokens_per_s_per_gpu && `${plainNumber(log.tokens_per_s_per_gpu)} tokens/s per GPU`,
    log.flops_per_s_per_gpu && `${quantity(log.flops_per_s_per_gpu, "FLOP/s")} per GPU`,
    log.utilisation && `MFU ${percent(log.utilisation)}`,
    log.memory_bytes && `at most ${bytes(log.memory_bytes)} of memory`,
  ].filter(Boolean);
  return [["plain", `Read as ${grouped(log.steps)} ${log.steps === 1 ? "step" : "steps"} of ${log.framework}: ${facts.join(", ")}.`]];
}

function memoryRows(log) {
  const { asked_bytes: asked, capacity_bytes: capacity, free_bytes: free, allocated_bytes: held, reserved_unallocated_bytes: torn } = log;
  const rows = [["plain", `Read as PyTorch's out-of-memory message: it asked for ${bytes(asked)} with ${bytes(free)} free of ${bytes(capacity)}${held === null ? "" : `, while tensors had ${bytes(held)}`}${torn ? ` and ${bytes(torn)} was reserved but unallocated` : ""}.`]];
  if (torn && torn + free >= asked) {
    rows.push(["good", `There was enough memory, but in pieces: ${bytes(torn + free)}. Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before you change the job.`]);
  } else if (held !== null) {
    rows.push(["warning", `The job needs at least ${bytes(held + asked)} for its tensors, ${bytes(Math.max(0, asked - free - (torn ?? 0)))} more than there was.`]);
  }
  return rows;
}
