// Sets of moments as sorted, disjoint intervals; mirrors figgen.models.step.intervals.

/** The sum to its last digit but one, whatever the order of magnitude of what is added. */
export function total(values) {
  let [sum, lost] = [0, 0];
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return sum + lost;
}

const EMPTY = Object.freeze({ starts: [], ends: [] });

/** The moments within any of the intervals, as { starts, ends }; empty and touching ones vanish. */
export function union({ starts, ends }) {
  const some = [];
  let sorted = true;
  for (let at = 0; at < starts.length; at++) {
    if (!(ends[at] > starts[at])) continue;
    sorted &&= !some.length || starts[some[some.length - 1]] <= starts[at];
    some.push(at);
  }
  if (!sorted) some.sort((one, other) => starts[one] - starts[other]);
  if (!some.length) return EMPTY;
  const found = { starts: [starts[some[0]]], ends: [] };
  let last = ends[some[0]];
  for (const at of some) {
    if (starts[at] > last) {
      found.ends.push(last);
      found.starts.push(starts[at]);
    }
    last = Math.max(last, ends[at]);
  }
  found.ends.push(last);
  return found;
}

const joined = (lists) => lists.reduce((all, list) => all.concat(list), []);

/** The moments within any of the sets. */
export const together = (...sets) =>
  union({ starts: joined(sets.map(({ starts }) => starts)), ends: joined(sets.map(({ ends }) => ends)) });

/** The moments of a set from `start` to `end`. */
export function within(some, start, end) {
  const clip = (time) => Math.min(Math.max(time, start), end);
  return union({ starts: some.starts.map(clip), ends: some.ends.map(clip) });
}

/** The moments from `start` to `end` that are not in the set. */
export function outside(some, start, end) {
  const inner = within(some, start, end);
  return union({ starts: [start, ...inner.ends], ends: [...inner.starts, end] });
}

/** The moments of the first set that are not in the second. */
export function without(some, other) {
  if (!some.starts.length) return some;
  const [start, end] = [some.starts[0], some.ends[some.ends.length - 1]];
  const rest = outside(some, start, end);
  return outside(together(rest, within(other, start, end)), start, end);
}

/** How long all intervals last. */
export const length = ({ starts, ends }) => total(ends.map((end, at) => end - starts[at]));
