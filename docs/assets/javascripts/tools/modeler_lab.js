// The link from the modeler to the schedule lab, with the configuration's times. Pure.

import { durations, hop_s } from "../models/step/step.js";
import { sum } from "../engine/runtime.js";
import { carry } from "./job_carried.js";

const MOST = { stages: 64, microbatches: 512, visits: 2 ** 14, layers: 400 }; // the lab's limits

/**
 * The lab's query for a pipeline whose virtual stages take `times`, and the `job` that goes along; null
 * for what the lab does not carry out. The lab has one time of each pass for an average rank and the share
 * of every stage in it, so the whole time of every stage is kept, and of its passes the mean shares.
 */
export function labQuery(setup, times, job) {
  const { pp } = setup.parallel, { placement, microbatches } = setup;
  if (pp < 2 || pp > MOST.stages || microbatches > MOST.microbatches || placement.stages * microbatches > MOST.visits) return null;
  const { forward, backward_input, backward_weight, latency, overlapped_pair: pairs } = durations(setup, times, hop_s(times));
  const ms = (seconds) => Number((1000 * seconds).toPrecision(6));
  const rank = (all) => ms(sum(all) / pp);
  const each = forward.map((time, stage) => time + backward_input[stage] + backward_weight[stage]);
  const alike = Math.max(...each) / Math.min(...each) < 1 + 1e-6;
  const layers = each.map((time) => Number(((1000 * time * placement.stages) / sum(each)).toFixed(3))).join(",");
  const { stages, pipes, ranks } = placement;
  const chunks = stages / ranks / pipes;
  return new URLSearchParams([
    ["a", setup.schedule], ["b", ""], ["c", ""], ["stages", pp], ["microbatches", microbatches], ...(chunks > 1 ? [["chunks", chunks]] : []),
    ["forward", rank(forward)], ["inputs", rank(backward_input)], ["weights", rank(backward_weight)], ["message", ms(latency)],
    ...(pairs ? [["pair", rank(pairs)]] : []), ...(alike || pipes > 1 || layers.length > MOST.layers ? [] : [["layers", layers]]),
    ...carry(job),
  ]).toString();
}
