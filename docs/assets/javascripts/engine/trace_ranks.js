// What is kept of the events of a trace, rank by rank; mirrors figgen.models.profiles.trace_ranks.

import { InputError, grouped } from "./errors.js";
import {
  argsOf, bytesOf, COMPUTING, COPIES, groupOf, isCall, isObject, isWork, KERNELS, LAUNCHES, MADE_BY, STEP, text,
} from "./trace_kinds.js";

export const spans = () => ({ starts: [], ends: [] });

const recordedRank = () => ({
  kernels: spans(), copies: spans(), work: new Map(), runs: new Map(), calls: new Map(), steps: new Map(),
  launched: { numbers: [], moments: [] }, began: { numbers: [], moments: [] },
});

function rankName(header, event, name) {
  const { distributedInfo: job, otherData: other } = header;
  if (isObject(other) && other["made by"] === MADE_BY) return `pipeline rank ${text(event.pid)}`;
  return isObject(job) && Object.hasOwn(job, "rank") ? `rank ${text(job.rank)}` : name;
}

const isFinite = (value) => typeof value === "number" && Number.isFinite(value);
const threadOf = ({ tid }) => (typeof tid === "object" ? text(tid) : tid);

function add(kept, start, end) {
  kept.starts.push(start);
  kept.ends.push(end);
}

function of(map, key) {
  let found = map.get(key);
  if (!found) map.set(key, (found = spans()));
  return found;
}

/** { ranks, take }: `take(header, event)` keeps an event's times in the map `ranks`. */
export function keeping(name) {
  const ranks = new Map();
  let number = -1;
  const take = (header, event) => {
    number++;
    if (event.ph !== "X") return;
    const { ts: start, dur: took = 0 } = event;
    if (!(isFinite(start) && isFinite(took)) || took < 0) {
      const got = [start, took].map((value) => (typeof value === "object" ? text(value) : value));
      throw new InputError(`${name}, event ${grouped(number)}`, { expected: "a finite ts and a dur >= 0", got });
    }
    const rank = rankName(header, event, name);
    if (!ranks.has(rank)) ranks.set(rank, recordedRank());
    keep(ranks.get(rank), event, header, start, start + took);
  };
  return { ranks, take };
}

function keep(kept, event, header, start, end) {
  const { cat } = event;
  if (isCall(event)) {
    const group = groupOf(event, header);
    const key = JSON.stringify(Object.values(group));
    if (!kept.calls.has(key)) kept.calls.set(key, { group, key, bytes: 0, ...spans() });
    const calls = kept.calls.get(key);
    add(calls, start, end);
    calls.bytes += bytesOf(event, group);
    if (!KERNELS.has(cat)) add(of(kept.runs, threadOf(event)), start, end);
  } else if (KERNELS.has(cat) || cat === COMPUTING) add(kept.kernels, start, end);
  else if (COPIES.has(cat)) add(kept.copies, start, end);
  else if (isWork(event)) add(of(kept.work, threadOf(event)), start, end);
  else if (cat === "cpu_op" && text(event.name).startsWith("c10d::")) add(of(kept.runs, threadOf(event)), start, end);
  else if (text(event.name).startsWith(STEP) && (cat === "user_annotation" || cat === "gpu_user_annotation")) {
    // A step where the device went through it, or else the host.
    if (cat === "gpu_user_annotation" || !kept.steps.has(event.name)) kept.steps.set(event.name, [start, end]);
  }
  const { correlation } = argsOf(event);
  if (!Number.isInteger(correlation) || correlation < 0 || correlation >= 2 ** 63) return;
  const [into, moment] = LAUNCHES.has(cat) ? [kept.launched, end] : [kept.began, start];
  if (!LAUNCHES.has(cat) && !KERNELS.has(cat) && !COPIES.has(cat)) return;
  into.numbers.push(correlation);
  into.moments.push(moment);
}
