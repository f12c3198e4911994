// Traces and snapshots that a reader gives, read piece by piece; nothing leaves the browser. What they
// mean is printed from figgen.models.profiles and figgen.models.memory.

import { InputError, grouped } from "../engine/errors.js";
import { unpickled } from "./profile_pickle.js";
import { traceText } from "./profile_trace.js";
import { devices_of, history_of, peak_of, refused_of, state_of } from "../models/memory/allocator_snapshot.js";
import { REMEDIES, summary_of } from "../models/memory/snapshot_summary.js";
import { kinds_sentences, refusals, state_rows, summary_sentence } from "../models/memory/snapshot_text.js";
import { kinds_together } from "../models/profiles/kernel_times.js";
import { KINDS, lanes_of } from "../models/profiles/lanes.js";
import { Reading, profile_of, ranks_of, read_event } from "../models/profiles/profile.js";
import { causes, pairs, slow_rank } from "../models/profiles/profile_against.js";
import { bus_bandwidth_bytes_per_s, common_calls, slowest, waiting } from "../models/profiles/profile_beside.js";
import { remarks_of, savings_of } from "../models/profiles/profile_findings.js";
import { against_section, sections } from "../models/profiles/profile_text.js";
import { against_answer, profile_answer } from "../models/profiles/profile_words.js";
import { setup_of } from "../models/profiles/trace_setup.js";
import { mapped } from "../engine/records.js";
import { quantity } from "./quantities.js";

export const LARGEST_FILE = 200e6;
export const LARGEST_TEXT = 2e9; // characters of a trace when it is unpacked
const EVERY_MS = 100;

/**
 * { profile, snapshot } of files, each null without such a file, `against` the files of other steps;
 * `tell(share)` while reading. Throws InputError for what cannot be read, with the file's name in it.
 */
export async function readFiles(files, { against = [], device = null, tell = () => {} } = {}) {
  const bytes = [...files, ...against].reduce((sum, { size }) => sum + size, 0);
  if (bytes > LARGEST_FILE) {
    throw new InputError("files", { expected: `at most ${grouped(LARGEST_FILE)} bytes in a browser; figgen profile and figgen memory-snapshot read larger ones`, got: bytes });
  }
  const progress = { before: 0, tell: (read) => tell((progress.before + read) / Math.max(1, bytes)) };
  const { ranks, snapshots } = await read(files, progress);
  const bases = await read(against, progress);
  if (snapshots.length > 1) throw new InputError("snapshots", { expected: "one at a time", got: snapshots.length });
  return {
    profile: ranks.length ? profileOf(ranks, bases.ranks) : null,
    snapshot: snapshots.length ? await snapshotOf(snapshots[0], device) : null,
  };
}

async function read(files, progress) {
  const [ranks, snapshots] = [[], []];
  for (const file of files) {
    const packed = await isPacked(file);
    if (await isPickle(file, packed)) snapshots.push({ file, packed });
    else ranks.push(...(await traceOf(file, packed, progress.tell)));
    progress.before += file.size;
  }
  return { ranks, snapshots };
}

async function isPacked(file) {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return head[0] === 0x1f && head[1] === 0x8b;
}

// Whether a file, or its unpacked content, begins like a pickle.
async function isPickle(file, packed) {
  if (!packed) return new Uint8Array(await file.slice(0, 1).arrayBuffer())[0] === 0x80;
  const pieces = unpacked(file.slice(0, 4096)).getReader();
  try {
    const { value } = await pieces.read();
    return value?.[0] === 0x80;
  } catch {
    return false;
  } finally {
    pieces.cancel().catch(() => {});
  }
}

const unpacked = (file) => file.stream().pipeThrough(new DecompressionStream("gzip"));

// Everything that is shown of recorded ranks; records become plain objects for messages between threads.
function profileOf(read, bases) {
  const ranks = read.map(({ rank }) => rank);
  const worst = slowest(ranks);
  const common = common_calls(ranks);
  const waits = waiting(common);
  const slow = slow_rank(ranks, waits);
  const write = (value, unit, spec) => quantity(value, unit, spec);
  const said = sections(ranks, worst, common, waits, slow, write);
  const data = {
    kernels: Object.fromEntries(kinds_together(ranks.map((rank) => rank.all_kinds)).map(({ kind, seconds, share, bound }) => [kind, { seconds, share, bound }])),
    savings: savings_of(worst, waits), remarks: remarks_of(worst),
    ranks: ranks.map((rank) => ({ ...rank, calls: rank.calls.map((calls) => callsData(calls, common)) })),
    waiting: waits, slow_rank: slow,
  };
  const { text, page } = profile_answer(worst, ranks.length, waits, write, slow);
  const answer = { text, page };
  if (bases.length) {
    const [[rank, base]] = pairs(ranks, bases.map((one) => one.rank));
    data.against = causes(rank, base).map((cause) => ({ ...cause, more_s: cause.more_s }));
    said.push(against_section(rank, base, write));
    answer.text = `${against_answer(rank, base, write)} ${text}`;
  }
  const lanes = read.find(({ rank }) => rank === worst).lanes;
  return { ...plain({ answer, sections: said, data, worst, setup: setup_of(worst), kinds: KINDS }), lanes };
}

const callsData = ({ group, each_s, bytes, busy_s, exposed_s }, common) => ({
  group: group.name, collective: group.collective, ranks: group.size, calls: each_s.length, buffer_bytes: bytes, busy_s, exposed_s,
  bus_bandwidth_bytes_per_s: bus_bandwidth_bytes_per_s({ group, each_s, bytes }, common),
});

/** A record, dictionary or list as plain objects and arrays. */
export function plain(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(plain);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(entries.map(([key, one]) => [key, plain(one)]));
}

async function traceOf(file, packed, told) {
  const reading = new Reading(file.name);
  const trace = traceText(file.name, mapped);
  let number = 0;
  let [taken, length, last] = [0, 0, performance.now()];
  const counted = new TransformStream({ transform(chunk, to) { taken += chunk.length; to.enqueue(chunk); } });
  let stream = file.stream().pipeThrough(counted);
  if (packed) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const pieces = stream.getReader();
  const decoder = new TextDecoder();
  while (!trace.done) {
    const { done, text } = await next(pieces, decoder, file.name);
    length += text.length;
    if (length > LARGEST_TEXT) throw new InputError(`trace ${file.name}`, { expected: `at most ${grouped(LARGEST_TEXT)} characters in a browser; figgen profile reads larger ones`, got: "more" });
    if (text) trace.add(text);
    if (done) trace.add("");
    for (const event of trace.read()) read_event(reading, trace.header, event, number++);
    if (performance.now() - last > EVERY_MS) {
      last = performance.now();
      told(taken);
    }
  }
  await pieces.cancel().catch(() => {});
  return [...ranks_of(reading)].map(([name, kept]) => ({ rank: profile_of(name, kept), lanes: packedLanes(lanes_of(kept)) }));
}

// Lanes as arrays of numbers, which can be transferred between threads without copying.
const packedLanes = ({ lanes, names, steps, seconds }) => ({
  names, steps, seconds,
  lanes: lanes.map(({ name, starts, ends, kinds, names: named }) => ({
    name, starts: Float64Array.from(starts), ends: Float64Array.from(ends), kinds: Uint8Array.from(kinds), names: Uint32Array.from(named),
  })),
});

async function next(pieces, decoder, name) {
  try {
    const { done, value } = await pieces.read();
    return { done, text: decoder.decode(value, { stream: !done }) };
  } catch (error) {
    throw new InputError("trace", { expected: "a readable file", got: `${name}: ${error.message}` });
  }
}

async function snapshotOf({ file, packed }, asked) {
  const found = unpickled(await bytesOf(file, packed));
  if (!(found instanceof Map)) throw new InputError("snapshot", { expected: "a dict with segments", got: Array.isArray(found) ? "list" : typeof found });
  const devices = devices_of(found);
  const device = asked ?? devices[0];
  const [state, history, refused] = [state_of(found, device), history_of(found, device), refused_of(found, device)];
  const peak = peak_of(history);
  const summary = summary_of(state, peak);
  return plain({
    devices,
    sentence: summary ? summary_sentence(summary, peak) : null,
    page: summary ? REMEDIES.get(summary.remedy).page : null,
    refusals: refusals(refused), rows: state_rows(state), kinds: kinds_sentences(state, peak),
    data: {
      device, summary: summary ? { ...summary, ...REMEDIES.get(summary.remedy) } : null, state, peak, oom: refused, history,
    },
  });
}

async function bytesOf(file, packed) {
  if (!packed) return new Uint8Array(await file.arrayBuffer());
  try {
    const found = new Uint8Array(await new Response(unpacked(file)).arrayBuffer());
    if (found.length <= LARGEST_TEXT) return found;
  } catch (error) {
    throw new InputError("snapshot", { expected: "a readable file", got: error.message });
  }
  throw new InputError("snapshot", { expected: `at most ${grouped(LARGEST_TEXT)} bytes in a browser`, got: "more" });
}
