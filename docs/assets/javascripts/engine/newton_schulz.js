// Products of Muon's update: which matrices a GPU makes orthogonal; mirrors
// figgen.models.step.newton_schulz.

import { newton_schulz_flops } from "../step-formulas.js";
import { adapted, kinds, whole } from "./lora.js";
import { sum } from "./orders.js";

/** FLOPs of the update on the GPU of a pipeline rank that does most; 0 with other optimizers. */
export function updateFlops(setup, pipelineRank) {
  const { shape, recipe: { iterations }, parallel, dense_shards, zero_stage } = setup;
  if (!iterations) return 0;
  const shares = setup.stagesOf[pipelineRank].map((stage) => setup.shares[stage]);
  const works = [new Map(), new Map()];
  const add = (at, count, ...sides) => {
    const work = newton_schulz_flops({ rows: Math.max(...sides), columns: Math.min(...sides), iterations });
    works[at].set(work, (works[at].get(work) ?? 0) + count);
  };
  for (const share of shares) {
    const { layers: all, mixer_layers: mixers, mtp_layers } = share;
    const ofLayers = [[all - mixers, whole(setup, false), true], ...kinds(share).map(([layers, experts]) => [layers, whole(setup, experts), false])];
    for (const [layers, found, attention] of ofLayers) {
      for (const one of found.filter(({ part }) => (part === "attention") === attention)) {
        const { copies } = one;
        const [at, count] = copies > 1 ? [1, layers * Math.floor(copies / parallel.ep)] : [0, layers];
        for (const pair of sidesOf(setup, one)) add(at, count, ...pair);
      }
    }
    if (mixers) {
      add(0, mixers, shape.hidden, shape.state_space.projected);
      add(0, mixers, shape.hidden, shape.state_space.inner);
    }
    if (mtp_layers) add(0, mtp_layers, 2 * shape.hidden, shape.hidden);
  }
  const sharing = zero_stage ? [dense_shards, parallel.edp] : [1, 1];
  return sum(works.map((found, at) => mostDealt(found, sharing[at])));
}

/** The pipeline rank whose GPU has most of these products, and how many. */
export function busiest(setup) {
  const works = setup.stagesOf.map((_, rank) => updateFlops(setup, rank));
  const flops = Math.max(...works);
  return { rank: works.indexOf(flops), flops };
}

/** What they add to a step of so many seconds at the efficiency of products; nothing with other optimizers. */
export function addedTo(setup, step_time_s) {
  const { flops } = busiest(setup);
  const orthogonalising_s = flops / (setup.wide_peak_flops_per_s * setup.compute_efficiency);
  return flops
    ? { orthogonalising_flops: flops, orthogonalising_s, step_and_orthogonalising_s: step_time_s + orthogonalising_s } : {};
}

/** The widths of the matrix, or of the factor of an adapter, that is most work. */
export function largestSides(setup) {
  const works = kinds(setup.shape).flatMap(([, experts]) => whole(setup, experts)).flatMap((one) => sidesOf(setup, one));
  const work = ([inputs, outputs]) => Math.max(inputs, outputs) * Math.min(inputs, outputs) ** 2;
  return works.reduce((most, pair) => (work(pair) > work(most) ? pair : most));
}

// What is made orthogonal for a matrix: itself, or both factors beside it where it is frozen.
function sidesOf(setup, one) {
  const { lora_rank: rank } = setup;
  if (rank === null) return [[one.inputs, one.outputs]];
  return adapted(setup, one) ? [[one.inputs, rank], [rank, one.outputs]] : [];
}

// Work of the first of `ranks` to which pieces are dealt in turn, the most work first.
function mostDealt(works, ranks) {
  let [first, total] = [0, 0];
  for (const [work, count] of [...works].sort(([a], [b]) => b - a)) {
    total += work * (Math.ceil((first + count) / ranks) - Math.ceil(first / ranks));
    first += count;
  }
  return total;
}
