// What the profile reader says: rows of cells for tables and for text, word for word those of
// `figgen profile` and `figgen memory-snapshot`. Pure.

import { SAID } from "../engine/allocator_snapshot.js";
import { busBandwidth, slowest } from "../engine/profile.js";
import { PARTS } from "../engine/trace_kinds.js";
import { percent, plainNumber, quantity } from "./quantities.js";

export const SHARES = Object.entries(PARTS);
/** A time as the command line writes it. */
export const time = (value) => quantity(value, "s", "time");
const gigabytes = (value) => quantity(value / 1e9, "1", ".3f").replace("−", "-");

/** One row a rank; the parts add up to the step, what is hidden is within computing. */
export const partRows = (ranks) => [
  ["per step", "step", ...SHARES.map(([, name]) => name), "hidden"],
  ...ranks.map((rank) => [
    rank.name, time(rank.wall_s / rank.steps),
    ...SHARES.map(([part]) => percent(rank[part] / rank.wall_s)), percent(rank.hidden_s / rank.wall_s),
  ]),
];

/** The calls of one rank, per step. */
export const callRows = (rank, common) => [
  ["group", "collective", "ranks", "calls", "buffer", "time", "exposed", "busbw"],
  ...rank.calls.map((calls) => {
    const bandwidth = busBandwidth(calls, common);
    const number = calls.each_s.length;
    return [
      calls.group.name, calls.group.collective, String(calls.group.size || "?"),
      plainNumber(number / rank.steps, 4),
      calls.bytes ? quantity(calls.bytes / number, "B", "bytes") : "?",
      time(calls.busy_s / rank.steps), time(calls.exposed_s / rank.steps),
      bandwidth ? quantity(bandwidth, "B/s") : "?",
    ];
  }),
];

export const waitRows = (waits) => [
  ["waits for others", "in all", "came last"],
  ...[...waits].sort((one, other) => one.waited_s - other.waited_s)
    .map(({ name, waited_s, last, calls }) => [name, time(waited_s), `${last} of ${calls}`]),
];

export const stateRows = (state) => [["what", "GB"], ...SAID.map(([part, name]) => [name, gigabytes(state[part])])];

const kinds = (found) => Object.entries(found).map(([kind, size]) => `${kind} ${gigabytes(size)} GB`).join(", ") || "nothing";
export const kindsSentence = (state) => `in use now, by kind: ${kinds(state.kinds)}`;
export const peakSentence = ({ bytes, event, kinds: found }) => `peak ${gigabytes(bytes)} GB at event ${event}: ${kinds(found)}`;
export const callsTitle = (rank) => `${rank.name}, which computes longest, per step:`;
export const silent = (rank) => `${rank.name} communicates nothing`;

export const besideTitle = (rank) => `${rank.name} compared with the model:`;

/** What the command line prints of traces; `besides` are rows beside the model, if any. */
export function profileText({ ranks, common, waits }, besides = null) {
  const worst = slowest(ranks);
  const calls = worst.calls.length ? [callsTitle(worst), ...aligned(callRows(worst, common), 2)] : [silent(worst)];
  return lines([...aligned(partRows(ranks), 1), "", ...calls, ...(waits.length ? ["", ...aligned(waitRows(waits), 1)] : []),
    ...(besides ? ["", besideTitle(worst), ...aligned(besides, 2)] : [])]);
}

/** What it prints of a snapshot. */
export const snapshotText = ({ state, peak }) =>
  lines([...aligned(stateRows(state), 1), "", kindsSentence(state), ...(peak ? [peakSentence(peak)] : [])]);

const lines = (all) => `${all.join("\n")}\n`;

// Rows as lines of equal columns, the first `left` of them flush left, numbers flush right.
function aligned(rows, left) {
  const size = (cell) => Array.from(cell).length;
  const widths = rows[0].map((_, column) => rows.reduce((most, row) => Math.max(most, size(row[column])), 0));
  return rows.map((row) => row.map((cell, column) => {
    const pad = " ".repeat(widths[column] - size(cell));
    return column < left ? cell + pad : pad + cell;
  }).join("  ").trimEnd());
}

/** The object that `figgen profile --json` prints. */
export const profileData = ({ ranks, common, waits }, model = null) => ({
  ranks: ranks.map((rank) => ({
    ...rank,
    calls: rank.calls.map((calls) => ({
      group: calls.group.name, collective: calls.group.collective, ranks: calls.group.size,
      calls: calls.each_s.length, buffer_bytes: calls.bytes, busy_s: calls.busy_s, exposed_s: calls.exposed_s,
      bus_bandwidth_bytes_per_s: busBandwidth(calls, common),
    })),
  })),
  waiting: waits,
  ...(model ? { model } : {}),
});
