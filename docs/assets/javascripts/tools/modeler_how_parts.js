// Lines behind computation, utilization and the hardware. Pure.

import { parameter_counts } from "../models/shape/transformer.js";
import { CONVENTIONS, MFU_CONVENTION } from "../models/step/compute.js";
import { KIND_FORMULAS } from "../models/step/kind_formulas.js";
import { stage_work } from "../models/step/stage_work.js";
import { workedLine } from "../engine/worked.js";
import { tunedComputing } from "./modeler_how_tuned.js";
import { passingOf, rateText, sharesOf, timeLine } from "./modeler_how_stages.js";
import { kindsOf } from "./modeler_model.js";
import { percent, plainNumber, quantity, seconds } from "./quantities.js";
import { plainLine } from "./worked.js";

const flop = (work) => quantity(work, "FLOP");

/** The counted FLOPs as a share of the matmul peak, or of another peak that a published MFU uses. */
export function utilisationLines({ setup, job, step }, notes, convention, peak_flops_per_s = job.cluster.peak_flops_per_s) {
  const { label } = CONVENTIONS.get(convention);
  const { tokens_per_s_per_gpu: tokens_per_gpu_s } = step;
  const value = (step.utilisation[convention] * job.cluster.peak_flops_per_s) / peak_flops_per_s;
  if (convention === "6nd" && setup.lora_rank === null) {
    const { active } = parameter_counts(setup.shape);
    return [workedLine(notes, "model_flops_utilization", { parameters: active, tokens_per_gpu_s, peak_flops_per_s }, ".1%")];
  }
  const without = setup.lora_rank === null ? "" : " Without gradients of frozen weights, and with adapters.";
  return [
    plainLine(
      `${convention}: ${label}.${without}${aboveWork({ setup, step }, convention)}`,
      "tokens/s per GPU · FLOP per token / dense peak",
      `${plainNumber(tokens_per_gpu_s, 4)} · ${quantity((value * peak_flops_per_s) / tokens_per_gpu_s, "FLOP", "si.4")} / ${quantity(peak_flops_per_s, "FLOP/s", "si.4")} = ${percent(value)}`,
    ),
  ];
}

// The site's convention counts masked matmuls, which kernels skip; one sentence says how much is computed.
function aboveWork({ setup, step: { utilisation } }, convention) {
  if (convention !== MFU_CONVENTION || !setup.flash_attention) return "";
  return ` Without the masked half of attention, which the kernel skips, it is ${percent(utilisation.causal)} (causal).`;
}

/** Computation of the pipeline rank that works longest, from its matmuls. */
export function computeLines({ setup, job, step }) {
  if (setup.lora_rank !== null) return tunedComputing({ setup, job, step });
  const stages = sharesOf(setup, step.pipeline_rank).map((share) => stage_work(setup, share));
  const passing = passingOf(setup);
  const [weights, core] = ["weights", "core"].map((key) => stages.reduce((sum, work) => sum + work[key], 0));
  const total = 3 * passing * (weights + core);
  const half = setup.flash_attention ? " without its masked half" : "";
  return [
    plainLine(
      `The forward pass of a microbatch on pipeline rank ${step.pipeline_rank}: matmuls with weights, 2 FLOP for each weight and token, and the attention core${half}, divided over TP and CP.`,
      "matmuls with weights + attention core",
      `${flop(weights)} + ${flop(core)} = ${flop(weights + core)}`,
    ),
    plainLine(
      "The backward pass does twice the work of the forward pass.",
      "3 · one forward pass · microbatches",
      `3 · ${flop(weights + core)} · ${plainNumber(passing)} = ${flop(total)}`,
    ),
    timeLine({ job, step }, total),
  ];
}

/** One kind of kernel or wait of a predicted step. */
export function kindLines({ step, job }, key) {
  const { label, seconds: s } = kindsOf({ step }).find((kind) => kind.key === key);
  return [plainLine(`As ${job.software} runs it, on the busiest GPU.`, KIND_FORMULAS.get(label), seconds(s))];
}

/** The forward pass that the backward pass repeats. */
export function recomputeLines({ step: { recompute_s }, job }) {
  const work = recompute_s * job.cluster.peak_flops_per_s * job.compute_efficiency;
  const [how, text] = job.parts ? [KIND_FORMULAS.get("recomputation"), ""] : ["recomputed FLOP / (peak · share)", `${flop(work)} / ${rateText(job)} = `];
  return [plainLine("The forward pass that the backward pass repeats.", how, text + seconds(recompute_s))];
}

const given = (doc, words, text, name) => ({
  ...plainLine(doc, words, text),
  ...(name !== "own" && { link: [`reference/hardware/#${name}`, `${name} in the catalog`] }),
});

/** Keys of worked lines about the hardware, and about published values. */
export const HARDWARE = {
  peak: ({ job, state }) => [
    given(
      `Dense peak of a GPU for matmuls in ${state.dtype.toUpperCase()}, without sparsity.`,
      "peak",
      quantity(job.cluster.peak_flops_per_s, "FLOP/s", "si.4"),
      job.accelerator,
    ),
  ],
  capacity: ({ memory, job }) => [
    given("Memory of a GPU.", "capacity", quantity(memory.capacity_bytes, "B"), job.accelerator),
  ],
  bandwidth: ({ job }, _, level) => {
    const { scale_up_bandwidth_bytes_per_s: up, network_bandwidth_bytes_per_s: net } = job.cluster;
    return level === "scale-up"
      ? [given("Per GPU per direction, inside a node.", "bandwidth", quantity(up, "B/s"), job.accelerator)]
      : [given("Per GPU per direction, between nodes.", "bandwidth", quantity(net, "B/s"), job.nic)];
  },
  world: ({ setup: { parallel } }) => [
    plainLine(
      "GPUs in all.",
      "nodes · GPUs per node",
      `${plainNumber(parallel.nodes)} · ${plainNumber(parallel.gpus_per_node)} = ${plainNumber(parallel.world_size)}`,
    ),
  ],
  published: ({ published, state }, _, key) => {
    const [name, format] = PUBLISHED[key];
    return [
      {
        ...plainLine("As published, not computed; its source is on the page of the run.", name, format(published[key])),
        link: [`reference/presets/${state.preset}/`, "the run's page"],
      },
    ];
  },
};

const PUBLISHED = {
  step_time_s: ["step time", seconds],
  tokens_per_s_per_gpu: ["tokens/s per GPU", plainNumber],
  model_flops_utilisation: ["MFU", percent],
  hardware_flops_utilisation: ["HFU", percent],
};
