// What printed schedules answer to the cases of test_schedules.py, as JSON.

import fs from "node:fs";
import { plain, record } from "./assets/javascripts/engine/records.js";
import { arrivals, by_action, free_at } from "./assets/javascripts/models/pipeline/arrivals.js";
import { action_of, empty_board, follow, left, offers, place, undo } from "./assets/javascripts/models/pipeline/board.js";
import { carried_out, held, peak_held, slots_csv, stage_shares, torch_listing } from "./assets/javascripts/models/pipeline/schedule_work.js";
import { build } from "./assets/javascripts/models/pipeline/schedules.js";
import { simulate } from "./assets/javascripts/models/pipeline/simulate.js";
import { Durations, critical_path } from "./assets/javascripts/models/pipeline/trace.js";
import { schedule_events } from "./assets/javascripts/models/profiles/chrome_trace.js";

const MEASURES = [
  "starts", "ends", "busy", "makespan", "bubble_fraction", "bubble_fraction_by_rank", "bubble_overhead",
  "bubble_overhead_by_rank", "span_by_rank", "bubble_fraction_without_flush", "peak_in_flight",
];

function said(answer) {
  try {
    return answer();
  } catch (error) {
    return { error: error.name === "InputError" ? error.message : error.stack, nearest: error.nearest };
  }
}
const slot = ({ action, rank, start, end, overlapped }) => [String(action), rank, start, end, overlapped];

function played(trace, moves) {
  const board = empty_board(trace.schedule, trace.durations);
  const answers = moves.map((move) => said(() => {
    if (typeof move === "string") return slot(place(board, action_of(board, move)));
    if (move % 7 === 0) return void undo(board) ?? null;
    const offered = board.lanes.flatMap((_, rank) => offers(board, rank));
    return offered.length ? slot(place(board, offered[move % offered.length])) : null;
  }));
  const placed = [follow(board, trace, trace.makespan / 2), left(board), follow(board, trace), left(board)];
  return { answers, placed, lanes: board.lanes.map((lane) => lane.map(slot)) };
}

function answered({ name, stages, microbatches, chunks, times, layers, cut, memory, moves }) {
  const schedule = build(name, stages, microbatches, chunks);
  const durations = record(Durations, times);
  const { placement } = schedule;
  const trace = cut === null ? carried_out(schedule, durations, layers)
    : simulate(schedule, cut ? durations.per_chunk(placement.chunks) : durations);
  const shares = stage_shares(placement, layers).map((share) => memory * share);
  const lanes = trace.placed;
  const placed = by_action(lanes);
  return {
    orders: String(schedule), ...Object.fromEntries(MEASURES.map((measure) => [measure, trace[measure]])),
    path: critical_path(trace).map(slot), held: lanes.map((lane) => held(lane, shares)), peaks: peak_held(lanes, shares),
    waits: lanes.map((lane) => lane.map(({ action }, at) => [
      free_at(lane, at), arrivals(placement, trace.durations.latency, placed, action).map(({ source, time }) => [String(source.action), time])])),
    csv: slots_csv(trace), torch: said(() => torch_listing(schedule)), played: played(trace, moves),
    events: Array.from(schedule_events(trace), plain),
  };
}
const { cases } = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(cases.map((one) => said(() => answered(one)))));
