// A training job as the page knows it, as records of the models.

import { InputError, unknown } from "./errors.js";
import { plain, record } from "./records.js";
import { shapeOf } from "./shape.js";
import { Cluster } from "../models/machine/cluster.js";
import { layout } from "../models/machine/layout.js";
import { TrainingSetup } from "../models/setup/training_setup.js";
import { recipe } from "../models/shape/recipes.js";
import { Attained } from "../models/step/attained.js";
import { microbatches_of } from "../scenarios/options/microbatches.js";
import { interval_name, residual_class } from "../scenarios/runs/residual_classes.js";
import { links_of, read_line } from "../scenarios/runs/measured_rates.js";
import { RateRow, SaidRates, attained_of, on_own_chip } from "../scenarios/runs/rate_row.js";

const NARROW = ["fp8", "fp4"];

// A catalog's entry with its key, or own numbers under the name "own".
function named(kind, wanted, known) {
  if (wanted !== null && typeof wanted === "object") return ["own", wanted];
  if (!Object.hasOwn(known, wanted)) throw unknown(kind, String(wanted), Object.keys(known));
  return [wanted, known[wanted]];
}

// Catalog → defaults.
const usual = new WeakMap();
/** What is taken where an option is left out, by name; null follows from other options. */
export function usualOf(catalog) {
  if (!usual.has(catalog)) usual.set(catalog, Object.fromEntries(catalog.options.map(({ name, default: given }) => [name, given ?? null])));
  return usual.get(catalog);
}

/**
 * The job of `choices`, named as the catalog's options: its records and its hardware. `model`,
 * `accelerator` and `nic` are names of the catalog, or own numbers in SI. Throws InputError in the
 * order and in the words of the command line.
 */
export function untimedJob(catalog, choices) {
  const given = { ...usualOf(catalog) };
  for (const name in choices) if (choices[name] !== undefined) given[name] = choices[name];
  const [model, shape] = named("model", given.model, catalog.models);
  const setup = setupOf(catalog, given, shapeOf(shape));
  return { given, model, setup, software: given.software, ...hardwareOf(catalog, given) };
}

function setupOf({ software }, given, shape) {
  const { nodes, gpus_per_node, tp, cp, pp, ep, etp, dp, order } = given;
  const parallel = layout(nodes, gpus_per_node, tp, cp, pp, ep, etp, dp, order);
  const microbatches = microbatches_of(parallel, given.microbatches, given.global_batch, given.microbatch_size);
  return record(TrainingSetup, {
    ...given, shape, parallel, microbatches, sequence: given.sequence ?? shape.sequence, recipe: recipe(given.recipe),
    framework: named("software", given.software, software)[1], layers_per_stage: given.layers_per_stage ?? [],
  });
}

function hardwareOf(catalog, given) {
  const { dtype, gpus_per_node } = given;
  const [accelerator, chip] = named("accelerator", given.accelerator, catalog.accelerators);
  if (gpus_per_node > (chip.scale_up_domain ?? Infinity)) {
    const expected = `at most ${chip.scale_up_domain}, the scale-up domain of ${accelerator}`;
    throw new InputError("gpus_per_node", { expected, got: gpus_per_node });
  }
  const peaks = chip.peaks ?? { [dtype]: chip.peak_flops_per_s };
  checkPeak(accelerator, peaks, dtype);
  const [nic, link] = named("link", given.nic, catalog.links);
  const measured = given.measured === null ? null : read_line(given.measured);
  const known = {
    peak_flops_per_s: peaks[dtype],
    scale_up_bandwidth_bytes_per_s: chip.scale_up_bandwidth_bytes_per_s,
    network_bandwidth_bytes_per_s: link.bandwidth_bytes_per_s / (link.per === "node" ? gpus_per_node : 1),
    memory_bandwidth_bytes_per_s: chip.memory_bandwidth_bytes_per_s,
    ...plain(measured ? links_of(measured) : new Map()),
    scale_up_latency_s: measured?.get("near")?.[1] ?? chip.scale_up_latency_s ?? catalog.latencies.scale_up_s,
    network_latency_s: measured?.get("far")?.[1] ?? catalog.latencies.network_s,
  };
  const cluster = record(Cluster, {
    ...known,
    scale_up_latency_s: given.scale_up_latency_s ?? known.scale_up_latency_s,
    network_latency_s: given.network_latency_s ?? known.network_latency_s,
  });
  return {
    accelerator, nic, cluster, measured, dtype, known_cluster: record(Cluster, known),
    // Muon orthogonalizes in 16 bits at least.
    wide_peak_flops_per_s: NARROW.includes(dtype) ? peaks.bf16 ?? peaks[dtype] : peaks[dtype],
    capacity_bytes: measured?.get("capacity")?.[0] ?? chip.memory_bytes ?? null,
    memory_bytes_per_s: chip.memory_bandwidth_bytes_per_s ?? null,
  };
}

/** Refuses a format that a chip with these `peaks` does not multiply. */
function checkPeak(accelerator, peaks, dtype) {
  if (Object.hasOwn(peaks, dtype)) return;
  throw new InputError(`${accelerator} has no dense ${dtype} matrix peak`, { expected: Object.keys(peaks).join(" or "), got: dtype });
}

// What software attains on a chip, as the catalog's columns have it; numbers of an own chip are shares. Throws an InputError for a format that the software does not multiply there.
function rowOf({ attained: { usual, own, columns, others }, accelerators }, software, chip, dtype) {
  const rows = Object.entries(accelerators).flatMap(([name, { peaks }]) => Object.keys(peaks).map((format) => `${name} ${format}`));
  const place = chip === "own" ? rows.length + own.indexOf(dtype) : rows.indexOf(`${chip} ${dtype}`);
  const values = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, Array.isArray(column) ? column[place] : column]));
  if (software !== usual) {
    const { kinds, rows: which } = others[software];
    if (which[place] === null) checkPeak(chip, accelerators[chip].peaks, "fp8");
    Object.assign(values, kinds[which[place]]);
  }
  const peak_flops_per_s = chip === "own" ? 1 : accelerators[chip].peaks[values.dtype];
  return record(RateRow, { ...values, peak_flops_per_s, rates: record(Attained, values) });
}

/** What a job attains: { attained, rates, residuals, interval_of }, where `rates` are those of its software on its chip. */
export function attainedOf(catalog, { given: { compute_efficiency, time_factor }, setup, accelerator, nic, software, dtype, measured, cluster, known_cluster }) {
  const row = rowOf(catalog, software, accelerator, dtype);
  const rates = accelerator === "own"
    ? on_own_chip(row, cluster.peak_flops_per_s, cluster.memory_bandwidth_bytes_per_s, cluster.scale_up_bandwidth_bytes_per_s) : row;
  const said = record(SaidRates, { measured, latencies: [known_cluster, cluster], compute_efficiency, time_factor });
  const attained = attained_of(rates, setup.shape.head_dim, nic, cluster.network_bandwidth_bytes_per_s, said);
  const { parallel: { world_size }, shape, lora_rank } = setup;
  const alike = residual_class(world_size, shape.state_space !== null, shape.experts !== null, rates.framework_class, rates.dense_class);
  const interval_of = interval_name(world_size, lora_rank !== null, alike);
  return { attained, rates, interval_of, residuals: catalog.residuals[interval_of] };
}
