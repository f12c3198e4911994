// Whether parallel sizes fit a cluster, and which near them do; mirrors figgen.models.machine.nearest.
//
// Sizes are { tp, cp, pp, ep, etp, dp }; etp and dp are null when they are left to be derived.

import { product, repr } from "./errors.js";

/** ETP as given, or what the framework takes when none is given. */
export function expertTp(sizes, convention) {
  if (sizes.etp !== null) return sizes.etp;
  return convention.etp === "tp" ? sizes.tp : 1;
}

/** Why `sizes` do not fit, as the parts of an InputError, or null when they do. */
export function problem(world_size, sizes, convention) {
  return (
    orderProblem(sizes, convention) ??
    denseProblem(world_size, sizes) ??
    expertProblem(world_size, sizes, convention)
  );
}

function orderProblem(sizes, convention) {
  for (const axis of ["tp", "cp", "pp", "ep"]) {
    if (sizes[axis] > 1 && !convention.order.includes(axis)) {
      const what = `order ${repr(convention.name)} has no ${axis} axis`;
      return { what, expected: `${axis}=1`, got: sizes[axis] };
    }
  }
  const only = convention.etp === "tp" ? sizes.tp : 1;
  if (convention.etp_fixed && expertTp(sizes, convention) !== only) {
    const what = `etp under order ${repr(convention.name)}`;
    return { what, expected: String(only), got: sizes.etp };
  }
  return null;
}

function denseProblem(world_size, { tp, cp, pp, dp }) {
  const model = tp * cp * pp;
  if (dp !== null && model * dp !== world_size) {
    const expected = `${world_size} (nodes × GPUs per node)`;
    const got = product(tp, cp, pp, dp);
    return { what: `TP·CP·DP·PP = ${tp}·${cp}·${dp}·${pp}`, expected, got };
  }
  if (world_size % model) {
    const expected = `a divisor of ${world_size} (nodes × GPUs per node)`;
    return { what: `TP·CP·PP = ${tp}·${cp}·${pp}`, expected, got: product(tp, cp, pp) };
  }
  return null;
}

function expertProblem(world_size, sizes, convention) {
  const etp = expertTp(sizes, convention);
  const model = etp * sizes.ep * sizes.pp;
  if (world_size % model) {
    const expected = `a divisor of ${world_size} (nodes × GPUs per node)`;
    const got = product(etp, sizes.ep, sizes.pp);
    return { what: `ETP·EP·PP = ${etp}·${sizes.ep}·${sizes.pp}`, expected, got };
  }
  if (sizes.pp === 1 || !convention.order.includes("ep")) return null;
  const [dense, expert] = pipelineStrides(world_size, sizes, convention);
  if (dense === expert) return null;
  const name = repr(convention.name);
  return {
    what: `order ${name} would give dense and expert layers different pipelines`,
    expected: `one rank distance between stages, not ${dense} and ${expert}`,
    got: null,
  };
}

/** Rank distance between pipeline neighbours in the dense and in the expert mesh. */
export function pipelineStrides(world_size, sizes, convention) {
  const etp = expertTp(sizes, convention);
  const at = convention.order.indexOf("pp");
  if (at < 0) return [world_size, world_size];
  const dp = Math.floor(world_size / (sizes.tp * sizes.cp * sizes.pp));
  const edp = Math.floor(world_size / (etp * sizes.ep * sizes.pp));
  // An axis that the order leaves out is appended after pp, where it does not count.
  const faster = convention.order.slice(0, at);
  const stride = (of) => faster.reduce((total, axis) => total * of[axis], 1);
  const { tp, cp, ep } = sizes;
  return [stride({ tp, cp, ep: 1, dp }), stride({ tp: etp, cp: 1, ep, dp: edp })];
}

/** Up to three configurations that fit, closest first; the last may change `nodes` instead. */
export function nearestValid(nodes, gpus_per_node, wanted, convention) {
  const world_size = nodes * gpus_per_node;
  const found = [];
  for (const sizes of closestDense(world_size, wanted, convention)) {
    const completed = closestExpert(world_size, sizes, wanted, convention);
    if (completed) found.push([distance(completed, wanted), written(completed, wanted)]);
  }
  found.sort(([a], [b]) => a - b);
  const kept = found.slice(0, 2).filter(([cost]) => cost <= found[0][0] + 1);
  const texts = kept.map(([, text]) => text);
  const resized = otherNodeCount(nodes, gpus_per_node, wanted, convention);
  return resized === null ? texts : [...texts, resized];
}

function closestDense(world_size, wanted, { order }) {
  const found = [];
  for (const pp of divisors(world_size, order.includes("pp"))) {
    for (const tp of divisors(world_size / pp, order.includes("tp"))) {
      for (const cp of divisors(world_size / pp / tp, order.includes("cp"))) {
        const sizes = { ...wanted, tp, cp, pp, dp: world_size / pp / tp / cp };
        found.push([distance(sizes, wanted), sizes]);
      }
    }
  }
  found.sort(([a], [b]) => a - b);
  return found.slice(0, 48).map(([, sizes]) => sizes);
}

function closestExpert(world_size, sizes, wanted, convention) {
  const expertWorld = world_size / sizes.pp;
  let etps = [null];
  if (wanted.etp !== null) {
    const usual = expertTp({ ...sizes, etp: null }, convention);
    etps = convention.etp_fixed ? [usual] : divisors(expertWorld, true);
  }
  const eps = divisors(expertWorld, convention.order.includes("ep"));
  let [best, least] = [null, Infinity];
  for (const etp of etps) {
    for (const ep of eps) {
      const option = { ...sizes, ep, etp };
      const cost = distance(option, wanted);
      if (cost < least && !problem(world_size, option, convention)) [best, least] = [option, cost];
    }
  }
  return best;
}

// The same sizes on the nearest number of nodes, more or fewer, on which they fit.
function otherNodeCount(nodes, gpus_per_node, wanted, convention) {
  for (let step = 1; step < Math.min(8 * nodes, 2048); step++) {
    for (const count of [nodes + step, nodes - step]) {
      if (count < 1 || problem(count * gpus_per_node, wanted, convention)) continue;
      const dp = Math.floor((count * gpus_per_node) / (wanted.tp * wanted.cp * wanted.pp));
      return `nodes=${count} ${written({ ...wanted, dp }, wanted)}`;
    }
  }
  return null;
}

const ALL = ["tp", "cp", "pp", "ep", "etp", "dp"];

// One per size changed plus the powers of two that it changes by; dp at half the price.
function distance(sizes, wanted) {
  let total = 0;
  for (const axis of ALL) {
    const [asked, offered] = [wanted[axis], sizes[axis]];
    if (asked === null || offered === null || asked === offered) continue;
    total += (axis === "dp" ? 0.5 : 1) * (1 + Math.abs(Math.log2(offered / asked)));
  }
  return total;
}

function written(sizes, wanted) {
  const shown = ALL.filter((axis) => {
    if (sizes[axis] === null) return false;
    return sizes[axis] !== 1 || (wanted[axis] ?? 1) !== 1 || axis === "dp";
  });
  return shown.map((axis) => `${axis}=${sizes[axis]}`).join(" ");
}

// Divisors of `number` in order, or only 1 for an axis that the order does not have.
function divisors(number, allOfThem) {
  if (!allOfThem) return [1];
  const [small, large] = [[], []];
  for (let d = 1; d * d <= number; d++) {
    if (number % d) continue;
    small.push(d);
    if (d * d !== number) large.push(number / d);
  }
  return [...small, ...large.reverse()];
}
