// The journey's jobs, rung(6) or job("llama-3-70b", …) on a page, on a reader's cluster. Pure.

import { InputError } from "../engine/errors.js";
import { jobOf } from "../engine/job.js";
import { mapped, plain, record } from "../engine/records.js";
import { memory } from "../models/memory/memory.js";
import { step } from "../models/step/step.js";
import { RUNGS } from "../scenarios/stories/journey_ladder.js";
import { JourneyStep } from "../scenarios/stories/journey_step.js";
import { choices_on } from "../scenarios/stories/on_a_cluster.js";
import { served_shape } from "../scenarios/tools/served_shape.js";
import { allOptions, engineValue, kindOf } from "./modeler_options.js";

/** All numbers of a job by name; pages refer to them by name, so bundling must keep them all. */
export { numbers } from "../scenarios/stories/journey_numbers.js";

/** The fields of a job's record that the journey follows, as options. */
export const FOLLOWED = [
  "model", "accelerator", "nodes", "gpus_per_node", "nic", "software", "dtype", "sequence", "global_batch", "tp", "pp",
  "microbatch_size",
];

// Numbers of a chip and a network that are not in the catalog: key in the record, engine's name, unit in SI.
export const OWN_CHIP = [
  ["peak", "peak_flops_per_s", 1e12], ["hbm", "memory_bytes", 1e9], ["bw", "memory_bandwidth_bytes_per_s", 1e9],
  ["up", "scale_up_bandwidth_bytes_per_s", 1e9],
];
export const OWN_LINK = [["net", "bandwidth_bytes_per_s", 1e9]];
const OWN = { accelerator: OWN_CHIP, nic: OWN_LINK };

// The reader's own numbers, or undefined if one is missing or invalid.
function own(record, keys) {
  const found = (keys ?? []).map(([key, name, unit]) => [name, Number(record.get(key)) * unit]);
  return found.length && found.every(([, value]) => value > 0 && value < 1e30) ? Object.fromEntries(found) : undefined;
}

// The catalog knows which software was timed; other choices are checked when they are read.
const isKnown = ({ attained }, name, given) => name !== "software" || given === attained.usual || Object.hasOwn(attained.others, given);

/** { yours, problems } of a record: its valid options by name, in the engine's units. */
export function readRecord(catalog, record) {
  const [yours, problems] = [{}, []];
  for (const option of allOptions(catalog)) {
    const given = FOLLOWED.includes(option.name) ? record.get(option.key) : null;
    if (given === null || given === "auto") continue;
    const value = given === "own" ? own(record, OWN[option.name]) : kindOf(option).read(given);
    if (value === undefined || !isKnown(catalog, option.name, given)) problems.push(`${option.label}: this page cannot use ${given.slice(0, 40)}`);
    else yours[option.name] = given === "own" ? value : engineValue(option, value);
  }
  return { yours, problems };
}

// The options of a page's job on the reader's cluster; `lead` is the page's main model.
function choicesOn(catalog, lead, asked, yours) {
  const shapeOf = (name) => served_shape(mapped(catalog.models[name]));
  return plain(choices_on(lead, mapped(asked), mapped(yours), shapeOf));
}

// `nodes=8 tp=8 recompute=full` as options.
function written(catalog, text) {
  const known = new Map(allOptions(catalog).map((option) => [option.name, option]));
  return Object.fromEntries(text.split(" ").filter(Boolean).map((word) => {
    const [name, value] = word.split("=");
    return [name, known.get(name).kind === "whole" ? Number(value) : value];
  }));
}

// A job as the numbers that pages quote, for a journey that begins with `first`. Throws InputError.
function journeyStep(catalog, choices, first = null) {
  const job = jobOf(catalog, choices);
  const { setup, cluster, compute_efficiency, predicted, capacity_bytes, given, timed: { parts, seconds, numbers, attained } } = job;
  const time = seconds.total_s;
  return record(JourneyStep, {
    setup, cluster, parts: seconds,
    estimate: step(setup, cluster, compute_efficiency, parts),
    memory: memory(setup, capacity_bytes, given.get("reserve_bytes")),
    interval_s: predicted ? predicted.residuals.map((share) => time * share) : [NaN, NaN],
    interval_of: predicted?.interval_of ?? "jobs with few or no published runs",
    memory_rate: job.memory_bytes_per_s, job: numbers, attained,
    first_tokens_per_second: first?.tokens_per_second ?? setup.tokens_per_step / time,
  });
}

// Most of a page's jobs don't change when a reader moves one slider.
const kept = new Map();
const MOST_KEPT = 256;
function remembered(catalog, choices, first) {
  const asked = JSON.stringify([choices, first?.tokens_per_second]);
  if (!kept.has(asked)) {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    kept.set(asked, journeyStep(catalog, choices, first));
  }
  return kept.get(asked);
}

/** The journey on the cluster `yours`, in the terms of page `page`: { functions, lookUp, step, stepOf, rungs }. */
export function journey(catalog, page, yours) {
  const steps = new Map();
  const lead = (at) => RUNGS[Math.min(at, RUNGS.length) - 1];
  function made(model, text, at) {
    const key = `${at} ${model} ${text}`;
    if (!steps.has(key)) {
      const choices = choicesOn(catalog, lead(at).model, { model, ...written(catalog, text) }, yours);
      try {
        const first = at === 1 && text === textOf(1) ? null : step(1).step;
        steps.set(key, { step: remembered(catalog, choices, first), choices });
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        steps.set(key, { error, choices });
      }
    }
    return steps.get(key);
  }
  const stepOf = (model, sizes, options = "") => made(model, `${sizes} ${options}`, page);
  const textOf = (at) => `${lead(at).sizes} ${lead(at).options}`;
  const step = (at) => made(lead(at).model, textOf(at), at);
  const functions = { rung: (at) => step(at).step ?? {}, job: (...given) => stepOf(...given).step ?? {} };
  const lookUp = (name, given, field) => functions[name](...given)[field] ?? NaN;
  return { functions, lookUp, step, stepOf, rungs: RUNGS };
}
