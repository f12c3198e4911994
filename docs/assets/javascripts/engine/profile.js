// Where the time of recorded steps went, rank by rank; mirrors figgen.models.profiles.profile and the part of
// figgen.models.profiles.profile_beside that compares ranks.

import { InputError } from "./errors.js";
import { length, outside, together, total, union, within, without } from "./intervals.js";
import { axisOf, factorOf, ONE_SIDED } from "./trace_kinds.js";
import { spans } from "./trace_ranks.js";

/** The ranks that `keeping` kept of the trace `name`; throws InputError where nothing runs. */
export function profiles(ranks, name) {
  const found = [...ranks].filter(([, kept]) => kept.kernels.starts.length || kept.work.size || kept.calls.size);
  if (!found.length) throw new InputError(`trace ${name}`, { expected: "kernels, or operators on a CPU", got: "neither" });
  return found.map(([rank, kept]) => profile(rank, kept));
}

function profile(name, kept) {
  const sets = new Map([...kept.calls].map(([key, calls]) => [key, union(calls)]));
  let computing = kept.kernels.starts.length ? union(kept.kernels) : work(kept);
  let talking = together(...sets.values(), spans());
  let copying = union(kept.copies);
  const window = windowOf(kept, together(computing, talking, copying));
  [computing, talking, copying] = [computing, talking, copying].map((set) => within(set, ...window));
  const exposed = length(without(talking, computing));
  const busy = together(computing, talking);
  const idle = outside(together(busy, copying), ...window);
  const launch = late(kept, idle);
  const calls = [...kept.calls].map(([key, one]) => callsOf(one, within(sets.get(key), ...window), computing, window));
  return {
    name,
    steps: Math.max(1, kept.steps.size),
    wall_s: (window[1] - window[0]) / 1e6,
    computing_s: length(computing) / 1e6,
    exposed_s: exposed / 1e6,
    hidden_s: (length(talking) - exposed) / 1e6,
    copies_s: length(without(copying, busy)) / 1e6,
    launch_s: launch / 1e6,
    idle_s: (length(idle) - launch) / 1e6,
    exposed_by_axis: byAxis(kept, sets, computing, window),
    calls: calls.filter(({ each_s }) => each_s.length).sort((one, other) => other.exposed_s - one.exposed_s),
  };
}

// Exposed seconds of each axis, calls that run at the same time counted once.
function byAxis(kept, sets, computing, window) {
  const axes = new Map();
  for (const [key, { group }] of kept.calls) {
    const axis = axisOf(group);
    if (!axes.has(axis)) axes.set(axis, []);
    axes.get(axis).push(within(sets.get(key), ...window));
  }
  return [...axes].map(([axis, found]) => [axis, length(without(together(...found), computing)) / 1e6]);
}

// Operators of all threads of a CPU, without what they do inside of a collective.
const work = (kept) =>
  together(...[...kept.work].map(([thread, found]) => without(union(found), union(kept.runs.get(thread) ?? spans()))), spans());

// From the first recorded step's beginning to the last one's end; all activity without them.
function windowOf({ steps }, active) {
  if (!steps.size) return [active.starts[0], active.ends[active.ends.length - 1]];
  const all = [...steps.values()];
  return [all.reduce((t, [start]) => Math.min(t, start), Infinity), all.reduce((t, [, end]) => Math.max(t, end), -Infinity)];
}

// Microseconds of idle gaps that passed before the host had launched what ends them.
function late({ launched, began }, idle) {
  if (!launched.numbers.length || !began.numbers.length || !idle.starts.length) return 0;
  const order = launched.numbers.map((_, at) => at).sort((a, b) => launched.numbers[a] - launched.numbers[b] || a - b);
  const first = new Map(); // of equal numbers the first launch counts
  for (const at of order) if (!first.has(launched.numbers[at])) first.set(launched.numbers[at], launched.moments[at]);
  const pairs = [];
  began.numbers.forEach((number, at) => {
    if (first.has(number)) pairs.push([began.moments[at], first.get(number), number, at]);
  });
  pairs.sort((a, b) => a[0] - b[0] || a[2] - b[2] || a[3] - b[3]);
  let next = 0;
  return total(idle.ends.map((end, gap) => {
    while (next < pairs.length && pairs[next][0] < end - 1e-3) next++;
    return next < pairs.length ? Math.max(0, Math.min(pairs[next][1], end) - idle.starts[gap]) : 0;
  }));
}

function callsOf({ group, key, bytes, starts, ends }, found, computing, [from, to]) {
  const order = starts.map((_, at) => at).sort((a, b) => starts[a] - starts[b] || a - b);
  const each = order.filter((at) => starts[at] >= from && starts[at] < to).map((at) => (ends[at] - starts[at]) / 1e6);
  return {
    group, key,
    bytes: bytes * (each.length / starts.length),
    busy_s: length(found) / 1e6,
    exposed_s: length(without(found, computing)) / 1e6,
    each_s: each,
  };
}

/** Calls of one group that two ranks or more recorded as often as each other: { names, times } by key. */
export function commonCalls(ranks) {
  const held = new Map();
  for (const rank of ranks) {
    for (const { group, key, each_s } of rank.calls) {
      if (!group.ranks || ONE_SIDED.has(group.collective) || group.collective === "other") continue;
      if (!held.has(key)) held.set(key, new Map());
      held.get(key).set(rank.name, each_s);
    }
  }
  const common = new Map();
  for (const [key, found] of held) {
    const times = [...found.values()];
    if (times.length > 1 && times.every(({ length: count }) => count === times[0].length)) common.set(key, { names: [...found.keys()], times });
  }
  return common;
}

const shortest = ({ times }) => times[0].map((_, call) => times.reduce((least, rank) => Math.min(least, rank[call]), Infinity));

/** How long each rank waits for the last one of each collective. */
export function waiting(common) {
  const found = new Map();
  for (const each of common.values()) {
    const least = shortest(each);
    const last = least.map((time, call) => each.times.findIndex((rank) => rank[call] === time));
    each.names.forEach((name, row) => {
      const before = found.get(name) ?? { name, waited_s: 0, last: 0, calls: 0 };
      found.set(name, {
        name,
        waited_s: before.waited_s + total(each.times[row].map((time, call) => time - least[call])),
        last: before.last + last.filter((one) => one === row).length,
        calls: before.calls + least.length,
      });
    });
  }
  return [...found.values()];
}

/** Bus bandwidth of calls over the time of whoever came last; 0 where sizes are not known. */
export function busBandwidth({ group, key, bytes, each_s }, common) {
  const seconds = total(common.has(key) ? shortest(common.get(key)) : each_s);
  return seconds ? (factorOf(group) * bytes) / seconds : 0;
}

/** The rank that computes longest in a step. */
export const slowest = (ranks) =>
  ranks.reduce((most, rank) => (rank.computing_s / rank.steps > most.computing_s / most.steps ? rank : most));
