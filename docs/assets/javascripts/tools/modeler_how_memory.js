// Lines behind the memory of a pipeline rank, part by part. Pure.

import { kept_layers, stage_bytes } from "../models/memory/activations.js";
import { attention_held, layer_parameters, mixer_held, parameters_of, rank_parameters, table_held } from "../models/memory/rank_parameters.js";
import { sharesOf } from "./modeler_how_stages.js";
import { tunedState } from "./modeler_how_tuned.js";
import { PARTS } from "./modeler_model.js";
import { bytes, percent, plainNumber, quantity } from "./quantities.js";
import { plainLine, sumLine } from "./worked.js";

const parameters = (count) => quantity(count, "param", "si");
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The lines of one part of a rank's memory, or of all its memory. */
export function memoryLines(found, notes, rank, part) {
  if (!part) {
    return [
      sumLine(
        `A GPU of pipeline rank ${rank.pipeline_rank}.`,
        PARTS.map(([name, label]) => [label, rank.bytes[name]]),
        rank.total_bytes,
        bytes,
      ),
      sumLine(
        "The same in PyTorch's units.",
        [["allocated", rank.allocated_bytes], ["reserved but unallocated", rank.reserved_bytes - rank.allocated_bytes]],
        rank.reserved_bytes,
        bytes,
      ),
      sumLine("On the device.", [["reserved", rank.reserved_bytes], ["outside the allocator", rank.outside_bytes]], rank.total_bytes, bytes),
    ];
  }
  if (part === "activations") return activationLines(found, rank);
  if (part === "communication") return [lineSum("Buffers of collectives.", rank, part)];
  if (part === "working")
    return [lineSum("During the loss or the backward pass of one layer, whichever takes more.", rank, part)];
  if (part === "reserve") return [reserveLine(found, rank)];
  const state = stateLine(found, rank, part);
  const beside = rank.lines.filter(([of]) => of === part).length > 1;
  return beside ? [state, lineSum("Including the framework's own buffers for them.", rank, part)] : [state];
}

function stateLine({ setup }, rank, part) {
  const { recipe, zero_stage, dense_shards, parallel, lora_rank } = setup;
  const [first, each] = {
    weights: [3, recipe.weight_bytes],
    gradients: [2, recipe.gradient_bytes],
    optimizer: [1, recipe.optimizer_bytes],
  }[part];
  if (lora_rank !== null) return tunedState({ setup }, rank, part, [first, each]);
  const held = rank_parameters(setup, rank.pipeline_rank);
  const [dense, routed] = [false, true].map((one) => parameters_of(held, one));
  const tables = sum(held.filter((one) => ["embedding", "head"].includes(one.part)).map(({ count }) => count));
  const divided = zero_stage >= first;
  const share = (count, ways, size = each) =>
    `${parameters(count)} · ${bytes(size)}${divided ? ` / ${plainNumber(ways)}` : ""}`;
  const terms = [share(dense, dense_shards), ...(routed ? [share(routed, parallel.edp)] : [])];
  if (part === "optimizer" && recipe.table_bytes) terms.push(share(tables, dense_shards, recipe.table_bytes));
  const ways = setup.dense_data_axis === "dp-cp" ? "DP · CP" : "DP";
  return plainLine(
    `${PARTS.find(([name]) => name === part)[1]}, recipe ${recipe.name}, ZeRO ${zero_stage}${divided ? `: divided over ${ways}${routed ? ", routed experts over EDP" : ""}` : ": whole on every GPU"}.`,
    `parameters · bytes of each${divided ? " / ranks that share them" : ""}`,
    `${terms.join(" + ")} = ${bytes(rank.lines.find(([of]) => of === part)?.[2] ?? 0)}`,
  );
}

// What stages keep of their layers, added up: [count, bytes of one, name].
function layersKept(setup, shares) {
  const found = new Map();
  for (const [name, count, size] of shares.flatMap((share) => kept_layers(setup, share))) {
    found.set(name, [(found.get(name)?.[0] ?? 0) + count, size, name]);
  }
  return [...found.values()];
}

function activationLines(found, rank) {
  const { setup } = found;
  const shares = sharesOf(setup, rank.pipeline_rank);
  const kept = shares.map((share) => stage_bytes(setup, share));
  const layers = layersKept(setup, shares);
  const inside = sum(layers.map(([count, size]) => count * size));
  const one = plainLine(
    `Activations of one microbatch that this rank keeps until its backward pass, recomputation “${setup.recompute}”.`,
    [...layers.map(([, , name]) => `${name} · bytes of one`), "embedding and head"].join(" + "),
    `${layers.map(([count, size]) => `${plainNumber(count)} · ${bytes(size)}`).join(" + ")} + ${bytes(sum(kept) - inside)} = ${bytes(sum(kept))}`,
  );
  const peak = rank.bytes.activations;
  const whole = Math.abs(peak - rank.in_flight * sum(kept)) < 1;
  return [
    one,
    whole
      ? plainLine(
          "At the peak, with this rank's microbatches in flight.",
          "in flight · one microbatch",
          `${plainNumber(rank.in_flight)} · ${bytes(sum(kept))} = ${bytes(peak)}`,
        )
      : plainLine(
          `At the peak, counted along the order of ${setup.schedule}: its ${shares.length} stages hold different numbers of microbatches.`,
          "microbatches of each stage · activations it keeps",
          bytes(peak),
        ),
  ];
}

// The lines of a part, added up.
const lineSum = (words, rank, part) =>
  sumLine(words, rank.lines.filter(([of]) => of === part).map(([, name, size]) => [name, size]), rank.bytes[part], bytes);

function reserveLine({ setup }, rank) {
  const { label, allocator_share } = setup.framework_memory;
  return lineSum(
    `What ${label}'s allocator holds beyond its tensors, ${percent(allocator_share)} of the tensors that come and go, and the contexts of CUDA and NCCL, which you can set in the form.`,
    rank,
    "reserve",
  );
}

/** The layers of a rank. */
export function layersLines(found, rank) {
  const { setup } = found;
  const mine = sharesOf(setup, rank).map(({ layers }) => plainNumber(layers));
  return [
    plainLine(
      `${plainNumber(setup.shape.layers)} layers over ${plainNumber(setup.placement.depth)} stages, ${setup.mtp_layers ? "those of MTP next to the head" : "as even as they go"}; the stages of this rank:`,
      "layers of its stages",
      mine.length > 1 ? `${mine.join(" + ")} = ${plainNumber(found.memory.ranks[rank].layers)}` : mine[0],
    ),
  ];
}

/** The parameters of a rank. */
export function parameterLines(found, rank) {
  const { setup } = found;
  const shares = sharesOf(setup, rank);
  const terms = [false, true].flatMap((experts) => {
    const count = sum(shares.map((share) => (experts ? share.expert_layers : share.dense_layers)));
    if (!count) return [];
    const one = sum([...layer_parameters(setup, experts).values()]);
    return [[`${plainNumber(count)} layers${experts ? " with experts" : ""}`, count * one]];
  });
  const mixers = sum(shares.map((share) => share.mixer_layers));
  if (mixers) terms.push([`${plainNumber(mixers)} mixers for attention`, mixers * (mixer_held(setup) - attention_held(setup))]);
  const embedding = shares.some((share) => share.embedding) ? table_held(setup) : 0;
  const total = found.memory.ranks[rank].parameters;
  const rest = total - embedding - sum(terms.map(([, count]) => count));
  return [
    sumLine(
      "What one GPU of this rank holds; TP divides all but norms and biases, EP the routed experts.",
      [...terms, ["embedding", embedding], ["head, final norm and other tables", rest]],
      total,
      parameters,
    ),
  ];
}

/** The most microbatches whose activations a rank holds. */
export function inFlightLines({ setup, pipeline }, { pipeline_rank, in_flight }) {
  if (setup.schedule === "1f1b")
    return [
      plainLine(
        "1F1B starts one forward pass for each stage from here to the end, then alternates.",
        "min(microbatches, stages − rank)",
        `min(${plainNumber(setup.microbatches)}, ${pipeline.stages} − ${pipeline_rank}) = ${plainNumber(in_flight)}`,
      ),
    ];
  return [
    plainLine(
      `Most microbatches between their forward and their backward here, counted along the order of ${setup.schedule}; a stage of several counts for its share.`,
      "counted",
      plainNumber(in_flight),
    ),
  ];
}
