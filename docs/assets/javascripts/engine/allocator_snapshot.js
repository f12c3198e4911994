// What a snapshot of PyTorch's CUDA allocator says; mirrors figgen.models.memory.allocator_snapshot, whose
// tables it has. A snapshot is what pickle.js reads: dicts are Maps.

import { InputError, repr } from "./errors.js";
import { tables } from "../profile-tables.js";

const KINDS = tables.tensors.map(([kind, pattern]) => [kind, new RegExp(pattern)]);
const [OTHER, BEFORE] = [tables.other, tables.before];
const { used: USED, waiting: WAITING, free: FREE } = tables;
const OLDER = new Map(Object.entries(tables.states));
export const SAID = Object.entries(tables.said);

const isDict = (value) => value instanceof Map;
const listOf = (value) => (Array.isArray(value) ? value : []);
const shown = (value) => (isDict(value) ? "dict" : Array.isArray(value) ? "list" : repr(value ?? null).slice(0, 80));
const said = new WeakMap();

/** What a tensor is for, by the innermost frame that tells. */
export function kindOf(frames) {
  if (!said.has(frames)) said.set(frames, named(frames));
  return said.get(frames);
}

function named(frames) {
  for (const frame of frames) {
    if (!isDict(frame)) throw new InputError("a frame", { expected: "a dict", got: shown(frame) });
    const text = `${frame.get("filename") ?? ""}:${frame.get("name") ?? ""}`.toLowerCase();
    for (const [kind, pattern] of KINDS) if (pattern.test(text)) return kind;
  }
  return OTHER;
}

/** The numbers of the devices that a snapshot knows, 0 at least. */
export function devicesOf(snapshot) {
  const found = new Set(segmentsOf(snapshot).map((one) => one.get("device") ?? 0));
  listOf(snapshot.get("device_traces")).forEach((trace, device) => { if (listOf(trace).length) found.add(device); });
  return found.size ? [...found].filter(Number.isInteger).sort((a, b) => a - b) : [0];
}

function segmentsOf(snapshot) {
  if (!isDict(snapshot)) throw new InputError("snapshot", { expected: "a dict with segments", got: shown(snapshot) });
  const segments = snapshot.get("segments");
  if (!Array.isArray(segments) || !segments.every(isDict)) {
    throw new InputError("a snapshot", { expected: "a dict with a list of segments", got: shown(segments) });
  }
  return segments;
}

const segmentsOn = (snapshot, device) => segmentsOf(snapshot).filter((one) => (one.get("device") ?? 0) === device);

function size(value, what) {
  if (!Number.isFinite(value)) throw new InputError(what, { expected: "a number", got: shown(value) });
  return Math.trunc(value);
}

// Size, what was asked for, state and frames of every block, in older formats too.
function* blocksOf(segment) {
  for (const block of listOf(segment.get("blocks"))) {
    if (!isDict(block)) throw new InputError("a block", { expected: "a dict", got: shown(block) });
    const written = String(block.get("state") ?? "None");
    const state = OLDER.get(written) ?? written;
    if (![USED, WAITING, FREE].includes(state)) {
      throw new InputError("state of a block", { expected: `${USED}, ${WAITING} or ${FREE}`, got: state.slice(0, 80) });
    }
    const bytes = size(block.get("size"), "size of a block");
    const [history = new Map()] = listOf(block.get("history"));
    const asked = size(block.get("requested_size") ?? history.get("real_size") ?? bytes, "requested_size of a block");
    const frames = [block.get("frames"), history.get("frames")].find((list) => listOf(list).length) ?? [];
    yield [bytes, asked, state, frames];
  }
}

// Kinds with their bytes, the most first, as an object.
const mostCommon = (kinds) => Object.fromEntries([...kinds].sort((one, other) => other[1] - one[1]));
const plus = (counts, key, amount) => counts.set(key, (counts.get(key) ?? 0) + amount);

/** The state of a device: bytes of each part, which add up to `reserved`, and kinds of tensors. */
export function stateOf(snapshot, device) {
  const found = { allocated: 0, rounded: 0, waiting: 0, torn: 0, idle: 0 };
  const kinds = new Map();
  for (const segment of segmentsOn(snapshot, device)) {
    const blocks = [...blocksOf(segment)];
    const used = blocks.some(([, , state]) => state !== FREE);
    for (const [bytes, asked, state, frames] of blocks) {
      if (state === USED) {
        found.allocated += asked;
        found.rounded += bytes - asked;
        plus(kinds, kindOf(frames), asked);
      } else found[state === WAITING ? "waiting" : used ? "torn" : "idle"] += bytes;
    }
  }
  const reserved = Object.values(found).reduce((sum, part) => sum + part, 0);
  return { reserved, ...found, kinds: mostCommon(kinds) };
}

/** The most in use during the trace of a device, { bytes, event, kinds }; null without one. */
export function peakOf(snapshot, device) {
  const events = listOf(listOf(snapshot.get("device_traces"))[device]).map(eventOf);
  if (!events.some(({ action }) => action === "alloc")) return null;
  const held = new Map(older(snapshot, device, events));
  let total = [...held.values()].reduce((sum, [bytes]) => sum + bytes, 0);
  let [peak, at] = [-1, 0];
  events.forEach(({ action, address, bytes, kind }, index) => {
    if (action === "alloc") {
      held.set(address, [bytes, kind]);
      total += bytes;
    } else if (action === "free_completed") {
      total -= held.get(address)?.[0] ?? 0;
      held.delete(address);
    }
    if (total > peak) [peak, at] = [total, index + 1];
  });
  return { bytes: peak, event: at, kinds: kindsAt(new Map(older(snapshot, device, events)), events.slice(0, at)) };
}

function kindsAt(held, events) {
  for (const { action, address, bytes, kind } of events) {
    if (action === "alloc") held.set(address, [bytes, kind]);
    else if (action === "free_completed") held.delete(address);
  }
  const kinds = new Map();
  for (const [bytes, kind] of held.values()) plus(kinds, kind, bytes);
  return mostCommon(kinds);
}

// What was in use before the trace: freed in it without having been made, or still there.
function* older(snapshot, device, events) {
  const [made, gone] = [new Set(), new Set()];
  for (const { action, address, bytes } of events) {
    if (action === "alloc") made.add(address);
    else if (action === "free_completed") {
      if (!made.has(address) && !gone.has(address)) yield [address, [bytes, BEFORE]];
      gone.add(address);
    }
  }
  for (const segment of segmentsOn(snapshot, device)) {
    let address = size(segment.get("address") ?? 0, "address of a segment");
    for (const [bytes, asked, state, frames] of blocksOf(segment)) {
      if (state === USED && !made.has(address)) yield [address, [asked, kindOf(frames)]];
      address += bytes;
    }
  }
}

function eventOf(event) {
  if (!isDict(event) || !event.has("action")) {
    throw new InputError("an event of the trace", { expected: "a dict with an action", got: shown(event) });
  }
  const action = String(event.get("action"));
  const kind = action === "alloc" ? kindOf(listOf(event.get("frames"))) : "";
  return { action, address: size(event.get("addr") ?? 0, "addr of an event"), bytes: size(event.get("size") ?? 0, "size of an event"), kind };
}
