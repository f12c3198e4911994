// What measure.py wrote on a reader's machine, as the line of rates that the engine takes; mirrors
// figgen.catalog.measured_file and figgen.scenarios.runs.measured_rates. Pure; loaded on demand.

import { InputError } from "../engine/errors.js";
import { ACCESSES, LOSSES, OPTIMIZERS, PARTS, head_share } from "../scenarios/runs/measured_rates.js";
import { readJson } from "./json.js";

const FORMAT = "parallelism-computed/measured";
const LONGEST = 2 ** 24;
const CORE_BACKWARD = 2.5;
const FORMATS = ["bf16", "fp16", "fp8", "fp4", "tf32"];
const PLAIN_KERNELS = ["copy", "add", "norm", "softmax"];
const KEYS = {
  products: ["m", "n", "k", "seconds"],
  attention: ["batch", "heads", "head_dim", "sequence", "seconds"],
  kernels: ["bytes", "seconds"],
  collectives: ["ranks", "nodes", "message_bytes", "seconds"],
  loss: ["tokens", "vocab", "seconds"],
  optimizer: ["parameters", "update_s", "clip_s"],
};

/** The rates of a file's text as a line. Throws InputError for a file that is none, or says nonsense. */
export function ratesOf(text) {
  const file = read(text);
  const { machine, collectives } = file;
  // The second version also has backward's matmuls, masks as tensors and other kinds of access.
  const products = file.products.filter(({ side = "forward" }) => side === "forward");
  const attention = file.attention.filter(({ mask = "causal" }) => mask === "causal");
  const kernels = file.kernels.filter(({ kernel }) => PLAIN_KERNELS.includes(kernel));
  const known = {};
  const put = (name, found) => { if (found) known[name] = found; };
  for (const name of FORMATS) {
    put(name, line(products.filter(({ format }) => format === name).map(({ m, n, k, seconds }) => [1, 2 * m * n * k, seconds])));
  }
  put("attention", attentionRate(attention));
  put("memory", moved(kernels));
  const links = collectives.filter(({ ranks }) => ranks > 1);
  const [near, far] = [false, true].map((across) => links.filter(({ nodes }) => nodes > 1 === across));
  const shuffles = ({ collective }) => collective === "all_to_all";
  const rings = (row) => !shuffles(row);
  put("near", line(near.filter(rings).map(ring)));
  put("far", line(far.filter(rings).map(ring)));
  put("nearshuffle", line(near.filter(shuffles).map(shuffle))?.slice(0, 1));
  put("farshuffle", line(far.filter(shuffles).map(shuffle))?.slice(0, 1));
  if (machine.memory_bytes) known.capacity = [machine.memory_bytes];
  if (file.version > 1) byKind(file, put);
  if (!Object.keys(known).length) throw new InputError("the file", { expected: "something measured", got: "empty tables" });
  return Object.entries(known)
    .map(([name, found]) => [name, ...found.map((one, at) => plain(one / PARTS.get(name)[at]))].join("-"))
    .join("_");
}

// Rates of kernels of one kind each, which the second version measures.
function byKind(file, put) {
  for (const [part, names] of ACCESSES) {
    const rows = file.kernels.filter(({ kernel }) => names.includes(kernel));
    if (names.every((name) => rows.some(({ kernel }) => kernel === name))) put(part, moved(rows));
  }
  put("masked", attentionRate(file.attention.filter(({ mask }) => mask === "explicit")));
  for (const [part, wanted] of LOSSES) {
    const rows = file.loss.filter(({ mode }) => mode === wanted);
    put(part, rate(rows, ({ tokens, vocab }) => tokens * vocab, ({ seconds }) => seconds));
  }
  for (const [part, wanted] of OPTIMIZERS) {
    const rows = file.optimizer.filter(({ format }) => format === wanted);
    put(part, rate(rows, ({ parameters }) => parameters, ({ update_s, clip_s }) => update_s + clip_s));
  }
}

const rate = (rows, size, seconds) => (rows.length ? [sum(rows, size) / sum(rows, seconds)] : null);

const moved = (rows) => rate(rows, ({ bytes }) => bytes, ({ seconds }) => seconds);

/** The change to a state that makes the machine of a file the one that is computed with; none of an empty text. */
export const measuredChanges = (text) => ({ measured: text.trim() ? ratesOf(text) : null });

const sum = (rows, of) => rows.reduce((all, row) => all + of(row), 0);

// Six digits without an exponent, whose sign would be read as the next number's.
const plain = (value) => {
  const text = String(Number(value.toPrecision(6)));
  return text.includes("e") ? Number(text).toFixed(20).replace(/0+$/, "") : text;
};

// Forward and backward of the same size as one rate, that of heads of 128.
function attentionRate(rows) {
  const sizes = new Map();
  for (const row of rows) {
    const key = [row.batch, row.heads, row.head_dim, row.sequence].join();
    sizes.set(key, { ...sizes.get(key), [row.pass]: row });
  }
  const pairs = [...sizes.values()].filter(({ forward, backward }) => forward && backward);
  if (!pairs.length) return null;
  const work = ({ forward: { batch, heads, head_dim, sequence } }) =>
    ((1 + CORE_BACKWARD) * 2 * batch * heads * head_dim * sequence ** 2) / head_share(head_dim);
  return [sum(pairs, work) / sum(pairs, ({ forward, backward }) => forward.seconds + backward.seconds)];
}

// One time around a ring, of which an all-reduce takes two; ranks of a node lend each other adapters.
function ring({ collective, ranks, nodes, message_bytes, seconds }) {
  const sharing = nodes > 1 ? ranks / nodes : 1;
  return [ranks - 1, (((ranks - 1) / ranks) * message_bytes) / sharing, seconds / (collective === "all_reduce" ? 2 : 1)];
}

function shuffle({ ranks, nodes, message_bytes, seconds }) {
  const spread = nodes > 1 ? nodes : ranks;
  return [1, ((spread - 1) / spread) * message_bytes, seconds];
}

// [rate, start] with the least squares of relative errors, no start below 0; null where all is waiting.
function line(points) {
  if (!points.length) return null;
  const given = points.map(([starts, size, seconds]) => [starts / seconds, size / seconds]);
  const [aa, ab, bb] = [[0, 0], [0, 1], [1, 1]].map(([i, j]) => sum(given, (p) => p[i] * p[j]));
  const [a, b] = [0, 1].map((i) => sum(given, (p) => p[i]));
  const divisor = aa * bb - ab * ab;
  const sloped = divisor > 1e-9 * aa * bb && a * bb > b * ab;
  const start = sloped ? (a * bb - b * ab) / divisor : 0;
  const each = sloped ? (b * aa - a * ab) / divisor : b / bb;
  return each > 0 ? [1 / each, start] : null;
}

function read(text) {
  let content = null;
  try {
    if (text.length <= LONGEST) content = readJson(text);
  } catch {
    // told below
  }
  if (content?.format !== FORMAT || ![1, 2].includes(content.version) || !(content.machine?.memory_bytes >= 0)) {
    throw new InputError("the file", { expected: "what measure.py writes" });
  }
  const tables = Object.entries(KEYS).map(([name, keys]) => [name, rows(name, keys, content[name] ?? [])]);
  return { version: content.version, machine: content.machine, ...Object.fromEntries(tables) };
}

function rows(name, keys, listed) {
  if (!Array.isArray(listed)) throw new InputError(name, { expected: "a list" });
  listed.forEach((row, at) => {
    for (const key of keys) {
      const value = row?.[key];
      if (!(Number.isFinite(value) && value > 0)) {
        throw new InputError(`${name}[${at}].${key}`, { expected: "a number above 0", got: value ?? "missing" });
      }
    }
  });
  return listed;
}
