// What the modules of the schedule lab answer to the cases of test_schedule_lab.py, as JSON.

import { InputError } from "./engine/errors.js";
import { word } from "./engine/orders.js";
import { asSchedule, board, codeOf, follow, left, offers, place, refusal, undo } from "./engine/placing.js";
import { build } from "./engine/schedule.js";
import { carriedOut, criticalPath, orderText, slotsCsv, torchListing, waitsOf } from "./engine/schedule_work.js";
import { simulate } from "./engine/simulate.js";
import { durations } from "./engine/trace.js";
import { commandOf, fromQuery, queryOf, runsOf } from "./tools/lab_state.js";

function said(answer) {
  try {
    return answer();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

function answered(query) {
  const { state, problems } = fromQuery(query);
  const again = fromQuery(queryOf(state)).state;
  const [run] = runsOf({ ...state, b: "", c: "" });
  const stays = JSON.stringify(again) === JSON.stringify(state);
  if (run.error) return { command: commandOf(run.name, state), problems, stays, error: run.error.message };
  const { schedule, trace, peaks } = run;
  const words = (order) => Array.from(order, (code) => word(schedule, code));
  return {
    command: commandOf(run.name, state), problems, stays,
    text: orderText(schedule),
    csv: slotsCsv(trace),
    torch: said(() => torchListing(schedule)),
    answer: {
      order: schedule.orders.map(words),
      makespan: trace.makespan,
      bubble_fraction: trace.bubble_fraction,
      bubble_overhead: trace.bubble_overhead,
      bubble_fraction_by_rank: trace.bubble_fraction_by_rank,
      bubble_overhead_by_rank: trace.bubble_overhead_by_rank,
      bubble_fraction_without_flush: trace.bubble_fraction_without_flush,
      peak_in_flight: trace.peak_in_flight,
      critical_path: criticalPath(trace).map(([rank, at]) => word(schedule, schedule.orders[rank][at])),
      overlapped: [...schedule.overlapped].map((code) => word(schedule, code)).sort(),
      peak_bytes: peaks,
    },
    unexplained: unexplained(run),
  };
}

// Slots whose start is neither their rank's last end nor the arrival of an input, of theirs or of
// their partner's.
function unexplained({ schedule, trace, index }) {
  const found = [];
  schedule.orders.forEach((order, rank) =>
    order.forEach((code, at) => {
      const members = trace.paired[rank][at] ? [at - 1, at, at + 1].filter((one) => trace.start[rank][one] === trace.start[rank][at]) : [at];
      const waits = members.map((one) => waitsOf(trace, rank, one, index));
      const due = Math.max(...waits.flatMap(({ free, inputs }) => [free, ...inputs.map(({ arrival }) => arrival)]));
      if (due !== trace.start[rank][at]) found.push(word(schedule, code));
    }),
  );
  return found;
}

// A schedule placed one slot at a time runs as the simulator runs it.
function replayed([name, sizes, times]) {
  const schedule = build(name, sizes);
  const trace = carriedOut(schedule, durations(times));
  const of = board(schedule, trace.durations);
  const placed = follow(of, schedule);
  const whole = simulate(asSchedule(of), trace.durations);
  return {
    placed, left: left(of),
    same: JSON.stringify([of.start, of.end]) === JSON.stringify([whole.start.map((lane) => [...lane]), whole.end.map((lane) => [...lane])]),
    as_scheduled: schedule.overlapped.size > 0 || JSON.stringify(of.end) === JSON.stringify(trace.end.map((lane) => [...lane])),
    makespan: whole.makespan,
  };
}

// Plays the words of a game, taking back every third; what each answered.
function played([name, sizes, words]) {
  const schedule = build(name, sizes);
  const of = board(schedule, carriedOut(schedule, durations()).durations);
  const answers = words.map((text) => said(() => place(of, codeOf(of, text))));
  return { answers, orders: of.orders.map((order) => order.map((code) => word(of, code))), left: left(of) };
}

// A reader who takes any offer that is not refused, at random, always ends, with an order that runs.
function wandered([name, sizes, seed]) {
  let state = seed;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const schedule = build(name, sizes);
  const trace = carriedOut(schedule, durations());
  const of = board(schedule, trace.durations);
  let turns = 0;
  while (left(of) && turns++ < 20000) {
    const all = schedule.orders.flatMap((_, rank) => offers(of, rank)).filter((code) => refusal(of, code) === null);
    if (!all.length) return { stuck: true };
    place(of, all[random(all.length)]);
    if (random(7) === 0) undo(of);
  }
  const whole = simulate(asSchedule(of), trace.durations);
  return {
    orders: of.orders.map((order) => order.map((code) => word(of, code)).join(" ")),
    end: Math.max(...of.end.map((lane) => lane.at(-1))), makespan: whole.makespan,
  };
}

export const suites = {
  answered: (queries) => queries.map(answered),
  replayed: (cases) => cases.map(replayed),
  played: (cases) => cases.map(played),
  wandered: (cases) => cases.map(wandered),
};
