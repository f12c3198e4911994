// The nearest valid configurations for an invalid one. Pure: `works(state)` says
// whether a configuration can be set up.

import { CONVENTIONS } from "../models/machine/frameworks.js";

// The choices that a message is about; the first matching pattern counts.
const ABOUT = [
  [/mixer/, ["tp", "cp", "mixer_groups", "mixer_heads"]],
  [/beside state-space/, ["mixer_heads", "qk_norm", "window"]],
  [/kv_heads|^heads/, ["tp", "heads", "kv_heads"]],
  [/^experts of|ep$|^ep\b/, ["ep", "model"]],
  [/lays out no experts|experts under/, ["order", "sp", "tp"]],
  [/ffn_hidden of an expert|etp/, ["etp"]],
  [/ffn_hidden/, ["tp", "ffn_hidden"]],
  [/^sequence/, ["cp", "sequence"]],
  [/tokens of a context/, ["tp", "cp", "sequence", "sp"]],
  [/tokens of a microbatch/, ["microbatch_size", "sequence"]],
  [/layers of the model/, ["pp", "chunks", "schedule"]],
  [/top_k/, ["top_k", "experts"]],
  [/gpus.per.node/, ["gpus", "chip"]],
  [/head_dim/, ["hidden", "heads"]],
  [/peak/, ["dtype"]],
  [/time_factor/, ["factor"]],
  [/lora_rank/, ["lora_rank", "mtp", "model"]],
  [/lora_matrices/, ["lora_matrices"]],
  [/frozen_weights/, ["frozen_weights", "lora_rank"]],
  [/^activations/, ["activations"]],
  [/schedule|stages|microbatches|chunks/, ["microbatches", "pp", "chunks", "schedule"]],
];
const ALL = ["tp", "pp", "cp", "ep", "etp", "nodes", "gpus", "microbatches", "chunks", "sequence", "schedule", "dtype"];
const SIZED = ["tp", "cp", "pp", "ep"];

/** Up to `most` of { changes, next }, nearest first, for a `state` that `error` refuses. */
export function nearestValid(schema, state, error, works, most = 3) {
  const found = [];
  const tried = new Set();
  const consider = (wanted, cost) => {
    const changes = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => state[name] !== value));
    const key = JSON.stringify(Object.entries(changes).sort());
    if (key === "[]" || tried.has(key) || tried.size > 400) return;
    tried.add(key);
    if (works({ ...state, ...changes })) found.push({ changes, cost });
  };
  // What the message itself suggests, such as an EP of 1 for a model without experts.
  const asked = /^\d+\b/.exec(error.expected ?? "");
  const wish = asked && SIZED.includes(error.what) ? { [error.what]: Number(asked[0]) } : null;
  if (wish) consider(wish, 0);
  const layouts = error.nearest.map(layoutChanges).filter(Boolean);
  layouts.forEach((changes, at) => consider(changes, at));
  const about = ABOUT.find(([pattern]) => pattern.test(error.what))?.[1] ?? ALL;
  const singles = (keys) => keys.flatMap((key) => near(schema, state, key));
  if (wish && !found.length) for (const [more, cost] of singles(ALL)) consider({ ...more, ...wish }, 1 + cost);
  for (const [changes, cost] of singles(about)) consider(changes, 3 + cost);
  // A layout that fits may not suit the model, and the reverse.
  if (!found.length) {
    for (const first of [{}, ...layouts]) {
      for (const [changes, cost] of singles(ALL)) consider({ ...first, ...changes }, 5 + cost);
    }
  }
  if (!found.length) {
    for (const [one, a] of singles(about)) for (const [two, b] of singles(ALL)) consider({ ...one, ...two }, 8 + a + b);
  }
  found.sort((one, other) => one.cost - other.cost);
  return varied(found, most).map(({ changes }) => ({ changes, next: { ...state, ...changes } }));
}

// "tp=4 dp=2" as changes: axes that it does not name become 1, and DP follows.
function layoutChanges(text) {
  const changes = Object.fromEntries(SIZED.map((key) => [key, 1]));
  for (const word of text.split(" ")) {
    const [key, size] = word.split("=");
    if (!/^\d+$/.test(size ?? "")) return null;
    changes[key] = Number(size);
  }
  delete changes.dp;
  return changes;
}

// Values near that of one key as [changes, distance].
function near(schema, state, key) {
  const [value, kind] = [state[key], schema[key]];
  const choices = key === "order" ? [...CONVENTIONS.keys()] : kind.choices;
  if (choices) {
    const others = choices.filter((one) => one !== value && one !== "own");
    return others.map((one, at) => [{ [key]: one }, one === kind.fallback ? 1 : 1.25 + at / 4]);
  }
  if (typeof value === "boolean") return [[{ [key]: !value }, 1]];
  const offered = new Set([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 128]);
  const now = value ?? 1;
  for (let size = 1; size <= 64 * now && size < 2 ** 31; size *= 2) offered.add(size);
  for (const step of [1, 2, 3, 4]) offered.add(now - step).add(now + step);
  // A width must be a multiple of the number of heads.
  if (key === "hidden") for (const up of [0, 1]) offered.add((Math.floor(now / state.heads) + up) * state.heads);
  for (let part = 2; part <= now && part <= 4096; part++) if (now % part === 0) offered.add(now / part);
  const sizes = [...offered].filter((size) => size >= 1 && size !== value && kind.read(String(size)) !== undefined);
  const cost = (size) => Math.abs(Math.log2(size / now)) + (size & (size - 1) ? 0.1 : 0);
  const near = sizes
    .map((size) => [{ [key]: size }, cost(size)])
    .sort(([, a], [, b]) => a - b)
    .slice(0, 12);
  if (key === "gpus") near.push([{ gpus: kind.fallback }, 1]);
  return kind.fallback === null && value !== null ? [...near, [{ [key]: null }, 1.5]] : near;
}

// The best of each set of keys first, so that suggestions differ.
function varied(found, most) {
  const [first, rest, seen] = [[], [], new Set()];
  for (const one of found) {
    const keys = Object.keys(one.changes).join();
    (seen.has(keys) ? rest : first).push(one);
    seen.add(keys);
  }
  return [...first, ...rest].slice(0, most);
}
