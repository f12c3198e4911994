// Traces and snapshots that a reader gives, read piece by piece; nothing leaves the browser.

import { devicesOf, peakOf, stateOf } from "../engine/allocator_snapshot.js";
import { InputError, grouped } from "../engine/errors.js";
import { unpickled } from "../engine/pickle.js";
import { commonCalls, profiles, waiting } from "../engine/profile.js";
import { keeping } from "../engine/trace_ranks.js";
import { traceReader } from "../engine/trace_reader.js";

export const LARGEST_FILE = 200e6;
export const LARGEST_TEXT = 2e9; // characters of a trace when it is unpacked
const EVERY_MS = 100;

/**
 * { profile, snapshot } of files, each null without such a file; `tell(share)` while reading.
 * Throws InputError for what cannot be read, with the name of the file in it.
 */
export async function readFiles(files, { device = null, tell = () => {} } = {}) {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (bytes > LARGEST_FILE) {
    throw new InputError("files", { expected: `at most ${grouped(LARGEST_FILE)} bytes in a browser; figgen profile and figgen memory-snapshot read larger ones`, got: bytes });
  }
  let before = 0;
  const [ranks, snapshots] = [[], []];
  for (const file of files) {
    const told = (read) => tell((before + read) / Math.max(1, bytes));
    const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    if (head[0] === 0x80) snapshots.push(file);
    else ranks.push(...(await traceOf(file, head[0] === 0x1f && head[1] === 0x8b, told)));
    before += file.size;
  }
  if (snapshots.length > 1) throw new InputError("snapshots", { expected: "one at a time", got: snapshots.length });
  return {
    profile: ranks.length ? compared(ranks) : null,
    snapshot: snapshots.length ? await snapshotOf(snapshots[0], device) : null,
  };
}

function compared(ranks) {
  const common = commonCalls(ranks);
  return { ranks, common, waits: waiting(common) };
}

async function traceOf(file, packed, told) {
  const { ranks, take } = keeping(file.name);
  const reader = traceReader(file.name, take);
  let [read, length, last] = [0, 0, performance.now()];
  const counted = new TransformStream({ transform(chunk, to) { read += chunk.length; to.enqueue(chunk); } });
  let stream = file.stream().pipeThrough(counted);
  if (packed) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const pieces = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  while (!reader.done) {
    const { done, text } = await next(pieces, decoder, file.name);
    length += text.length;
    if (length > LARGEST_TEXT) throw new InputError(`trace ${file.name}`, { expected: `at most ${grouped(LARGEST_TEXT)} characters in a browser; figgen profile reads larger ones`, got: "more" });
    if (text) reader.push(text);
    if (done) {
      reader.end();
      break;
    }
    if (performance.now() - last > EVERY_MS) {
      last = performance.now();
      told(read);
    }
  }
  await pieces.cancel().catch(() => {});
  return profiles(ranks, file.name);
}

async function next(pieces, decoder, name) {
  try {
    const { done, value } = await pieces.read();
    return { done, text: decoder.decode(value, { stream: !done }) };
  } catch (error) {
    throw new InputError("trace", { expected: "a readable file", got: `${name}: ${error.message}` });
  }
}

async function snapshotOf(file, asked) {
  const found = unpickled(new Uint8Array(await file.arrayBuffer()));
  const devices = devicesOf(found);
  const device = asked ?? devices[0];
  return { device, devices, state: stateOf(found, device), peak: peakOf(found, device) };
}
