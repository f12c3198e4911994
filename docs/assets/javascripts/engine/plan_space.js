// Which layouts there are; mirrors figgen.models.planner.plan_space, and of figgen.models.planner.plan_loads what
// ranks hold when they are fullest.

import { TABLES } from "../plan-memory.js";
import { range } from "./runtime.js";
import { Sizes, problem } from "../models/machine/nearest.js";
import { kept_counts, kinds_held, lasting_counts } from "../models/memory/rank_load.js";
import { microbatch_group_size } from "../models/pipeline/one_f_one_b.js";
import { build } from "../models/pipeline/schedules.js";
import { divisors } from "../models/planner/plan_space.js";

const allowed = (sizes, wanted, most, of = null) => {
  if (wanted !== null) return sizes.includes(wanted) ? [wanted] : [];
  return sizes.filter((size) => size <= most && (of === null || of % size === 0));
};

/** Every mesh with `pp` stages: { tp, cp, ep, etp, dp }. */
export function meshes(job, pp) {
  const { setup, fixed, world } = job;
  const { shape, sequence, sequence_parallel: split, parallel: { gpus_per_node, convention } } = setup;
  const [parts, { experts }] = [world / pp, shape];
  const [all, eps] = [divisors(parts), allowed(experts ? divisors(parts) : [1], fixed.ep, parts)];
  const tps = allowed(all, fixed.tp, gpus_per_node, gpus_per_node).filter((tp) => dividesModel(shape, tp, split));
  const etps = allowed(all, fixed.etp, gpus_per_node, gpus_per_node);
  const found = [];
  for (const tp of tps) {
    const mixtures = (experts ? etps : [convention.etp === "tp" ? tp : 1]).flatMap((etp) =>
      eps.filter((ep) => !experts || (experts.count % ep === 0 && experts.ffn_hidden % etp === 0)).map((ep) => [ep, etp]));
    for (const cp of allowed(divisors(parts / tp), fixed.cp, sequence)) {
      if (sequence % (cp * (split ? tp : 1)) || !dividesMixers(shape, tp, cp)) continue;
      if (setup.trades_heads && shape.attention_layers && (shape.heads / tp) % cp) continue;
      const dp = parts / (tp * cp);
      if (fixed.dp !== null && fixed.dp !== dp) continue;
      for (const [ep, etp] of mixtures) {
        if (problem(world, new Sizes(tp, cp, pp, ep, etp, dp), convention) === null) found.push({ tp, cp, ep, etp, dp });
      }
    }
  }
  return found;
}

function dividesMixers({ state_space: mixers }, tp, cp) {
  if (!mixers) return true;
  const groups = mixers.groups / tp;
  return groups % 1 === 0 && Math.floor(mixers.mixer_heads / tp) % cp === 0 && !(groups % cp && cp % groups);
}

function dividesModel({ heads, kv_heads: kv, dense_layers, ffn_hidden, experts }, tp, split) {
  if (heads % tp || (kv % tp && tp % kv)) return false;
  if (dense_layers && ffn_hidden % tp) return false;
  if (!experts) return true;
  return (split || tp === 1) && !(experts.shared && experts.ffn_hidden % tp);
}

/** The least number of microbatches with which a schedule idles and holds as with these. */
export function alike(schedule, stages, microbatches, chunks) {
  if (schedule === "1f1b") return Math.min(microbatches, stages);
  if (["naive", "gpipe", "looped-bfs"].includes(schedule)) return microbatches;
  if (schedule === "interleaved-1f1b" || (schedule === "zb1p" && chunks > 1)) {
    return microbatches % stages ? microbatches : Math.min(microbatches, 4 * stages);
  }
  return Math.min(microbatches, 4 * stages + (schedule === "dualpipe" ? microbatches % 2 : 0));
}

const WINDOWED = ["1f1b", "interleaved-1f1b"];

/** Loads of a pipeline, none of which another one has in full, as `rank_bytes` takes them. */
export function rankLoads(schedule, stages, microbatches, chunks, shares, shape, again) {
  const [stagesOf, counts] = inFlight(schedule, stages, microbatches, chunks);
  const [rows, seen] = [[], new Set()];
  for (let rank = 0; rank < stages; rank++) {
    const held = stagesOf(rank).map((stage) => shares[stage]);
    const key = held.map((s) => [s.layers, s.expert_layers, +s.embedding, +s.head, s.mixer_layers].join()).join(";");
    if (WINDOWED.includes(schedule) && seen.has(key)) continue;
    seen.add(key);
    const each = held.map((share) => kept_counts(shape, again, share));
    const [still, kinds] = [lasting_counts(held, shape.tied_embeddings), kinds_held(held).map(Number)];
    for (const moment of counts(rank)) {
      const kept = range(7).map((at) => moment.reduce((sum, count, stage) => sum + count * each[stage][at], 0));
      rows.push([...still, ...kept, ...kinds]);
    }
  }
  return undominated(rows).map((row) => Object.fromEntries(TABLES.loaded.map((name, at) => [name, row[at]])));
}

function inFlight(schedule, stages, microbatches, chunks) {
  const looping = (rank) => range(chunks).map((chunk) => chunk * stages + rank);
  const same = (count) => () => [Array(chunks).fill(count)];
  if (schedule === "1f1b") return [looping, (rank) => [[Math.min(stages - rank, microbatches)]]];
  if (schedule === "naive") return [looping, same(1)];
  if (schedule === "gpipe" || schedule === "looped-bfs") return [looping, same(microbatches)];
  if (schedule === "interleaved-1f1b") return [looping, interleaved(stages, microbatches, chunks)];
  const order = build(schedule, stages, microbatches, chunks);
  const held = (rank) => order.placement.stages_of_rank(rank);
  return [held, (rank) => walked(order, held(rank), rank)];
}

// A window over the turns of chunks: forwards done so far less backwards done so far.
function interleaved(stages, microbatches, chunks) {
  const group = microbatch_group_size(stages, microbatches);
  const turns = [];
  for (let first = 0; first < microbatches; first += group) {
    const many = Math.min(group, microbatches - first);
    for (let chunk = 0; chunk < chunks; chunk++) for (let at = 0; at < many; at++) turns.push(chunk);
  }
  const visits = turns.length;
  const period = group === stages ? stages * chunks : visits;
  return (rank) => {
    const ahead = Math.min(2 * (stages - rank - 1) + (chunks - 1) * group, visits);
    const held = Array(chunks).fill(0);
    for (let at = 0; at < Math.min(ahead + 1, visits); at++) held[turns[at]]++;
    const moments = [[...held]];
    for (let step = 1; step < Math.min(visits - ahead, period); step++) {
      held[turns[ahead + step]]++;
      held[chunks - 1 - turns[step - 1]]--;
      moments.push([...held]);
    }
    return moments;
  };
}

function walked({ orders }, mine, rank) {
  const held = new Map(mine.map((stage) => [stage, 0]));
  const moments = new Map();
  for (const { stage, kind } of orders[rank]) {
    if (kind === "F") {
      held.set(stage, held.get(stage) + 1);
      const now = [...held.values()];
      moments.set(now.join(), now);
    } else if (kind !== "I") held.set(stage, held.get(stage) - 1);
  }
  return [...moments.values()];
}

function undominated(rows) {
  const at = Object.fromEntries(TABLES.loaded.map((name, place) => [name, place]));
  const attention = (row) => [
    row[at.dense_layers] + row[at.expert_layers] - row[at.mixers], row[at.kept_dense] + row[at.kept_experts] - row[at.kept_mixers],
  ];
  const counted = (row) => [...attention(row), ...row.slice(0, -3), Math.max(row.at(-3), row.at(-1)), Math.max(row.at(-2), row.at(-1)), row.at(-1)];
  const size = (row) => row.reduce((sum, count) => sum + count, 0);
  let left = rows.map((row) => ({ row, all: counted(row) })).map((one) => ({ ...one, size: size(one.all) }));
  left.sort((one, other) => other.size - one.size);
  const found = [];
  while (left.length) {
    const [first] = left;
    found.push(first.row); // nothing that follows has more of everything
    left = left.filter(({ all }) => all.some((count, at) => count > first.all[at]));
  }
  return found;
}
