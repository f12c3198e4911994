// The answer comes first: how long a step takes, how well the GPUs are used, whether it fits, what costs
// most; and two configurations side by side.

import { el } from "./dom.js";
import { SAFE, fit_words } from "../models/memory/fit_probability.js";
import { LEVELS, bottleneckOf, fullestOf, lossOf, mfuOf } from "./modeler_model.js";
import { MFU_CONVENTION, MFU_LABEL } from "../models/step/compute.js";
import { step_sentence } from "../models/step/step_words.js";
import { bytes, percent, plainNumber, quantity, seconds, span } from "./quantities.js";

/** A number that opens its derivation; `of` names the configuration, or a variant of it. */
export const value = (text, how, of = 0) =>
  el(
    "button",
    { type: "button", class: "fig-value modeler-value", "data-how": how, "data-of": of, "aria-haspopup": "dialog" },
    text,
  );

/** The cards; with two configurations each card has both. */
export function answer(found) {
  const both = found.length > 1;
  const cards = [
    [
      "Step time",
      ({ step, state }, of) => [
        value(seconds(step.step_time_s), "step", of),
        state.factor === null ? intervalNote(step, of)
          : el("small", {}, `${plainNumber(state.factor, 3)} × the prediction, in every alternative too`),
        el("small", {}, value(plainNumber(step.tokens_per_s_per_gpu), "throughput", of), " tokens/s per GPU"),
      ],
    ],
    [
      MFU_LABEL,
      (one, of) => [value(percent(mfuOf(one)), "mfu", of), el("small", {}, mfuNote(one, of))],
    ],
    ["Memory of the fullest GPU", memoryAnswer],
    ["Links need at least", linksAnswer],
    ["Largest loss besides computing", costAnswer],
  ];
  return cards.map(([title, of]) =>
    el(
      "div",
      { class: "modeler-card" },
      el("div", { class: "modeler-name" }, title),
      found.map((one, index) =>
        el(
          "div",
          { class: "modeler-figure" },
          both ? el("b", { class: "modeler-which" }, "AB"[index]) : null,
          of(one, index),
        ),
      ),
    ),
  );
}

// Where the step is likely to be measured; nothing for a share that a reader chose.
function intervalNote({ step_time_interval_s: interval }, of) {
  if (!interval) return null;
  return el("small", {}, value(span(...interval), "interval", of), " likely");
}

// The peak that it is relative to; or the published share, and this run's when counted in the same way.
function mfuNote(found, of) {
  const { step, published, job } = found;
  if (!published?.model_flops_utilisation) {
    return ["of the dense ", value(quantity(job.cluster.peak_flops_per_s, "FLOP/s"), "peak", of)];
  }
  const words = ["published ", value(percent(published.model_flops_utilisation), "published:model_flops_utilisation", of)];
  const there = published.attention === "causal" ? "causal" : MFU_CONVENTION;
  const peak = published.mfu_peak_flops_per_s;
  const sameBasis = there === MFU_CONVENTION;
  const samePeak = peak === job.cluster.peak_flops_per_s;
  if (sameBasis && samePeak) return words;
  const how = there === "causal" ? " without masked attention" : " with full attention";
  const counted = (step.utilisation[there] * job.cluster.peak_flops_per_s) / peak;
  return [
    ...words,
    sameBasis ? "" : how,
    samePeak ? "" : ` of the ${published.mfu_dtype.toUpperCase()} peak`,
    "; ",
    value(percent(counted), `mfu:${there}:published`, of),
    " so counted",
  ];
}

function memoryAnswer(found, of) {
  const { memory } = found;
  const fullest = fullestOf(found);
  const size = value(bytes(fullest.total_bytes), "fullest", of);
  if (memory.fits === null) return [size, el("small", {}, "no capacity known")];
  const room = value(bytes(Math.abs(memory.free_bytes)), "free", of);
  const capacity = value(bytes(memory.capacity_bytes), "capacity", of);
  const likely = memory.fit_probability;
  const [mark, kind] = likely >= SAFE ? ["✓ ", "modeler-good"] : memory.fits ? ["", null] : ["✕ ", "modeler-bad"];
  const left = memory.fits ? [room, " of ", capacity, " free"] : [room, " over ", capacity];
  return [size, el("small", { class: kind }, value(mark + fit_words(likely), "chance", of), ": ", left)];
}

// The link closest to being too slow comes first, with the bandwidth below which it sets the pace.
function linksAnswer({ step: { levels } }, of) {
  if (!levels.length) return [el("span", { class: "modeler-word" }, "nothing"), el("small", {}, "no link is used")];
  const share = ({ needed_bandwidth_bytes_per_s: need, bandwidth_bytes_per_s: have }) => need / have;
  const sorted = [...levels].sort((one, other) => share(other) - share(one));
  const need = ({ level, needed_bandwidth_bytes_per_s: bandwidth }) =>
    value(quantity(bandwidth, "B/s"), `needed:${level}`, of);
  const words = sorted.map((load, index) => {
    const slow = share(load) > 1;
    return el(
      "small",
      { class: slow ? "modeler-bad" : null },
      index ? need(load) : [],
      `${index ? " " : ""}${slow ? "✕ " : ""}${LEVELS[load.level]}, of `,
      value(quantity(load.bandwidth_bytes_per_s, "B/s"), `bandwidth:${load.level}`, of),
    );
  });
  return [need(sorted[0]), ...words];
}

function costAnswer(found, of) {
  const { key, label, seconds: s } = bottleneckOf(found);
  if (key === "compute")
    return [
      el("span", { class: "modeler-word" }, "nothing much"),
      el("small", {}, "computing is ", value(percent(s / found.step.step_time_s), "share:compute", of), " of the step"),
    ];
  const how = key.startsWith("exposed-") ? key.replace("-", ":") : key;
  // Readers who know the closed form should not be puzzled.
  const alone = key === "bubble" ? ["; equal stages alone ", value(percent(found.pipeline.bubble_fraction), "fraction", of)] : [];
  return [
    value(percent(s / found.step.step_time_s), `share:${key}`, of),
    el("small", {}, `${label}, `, value(seconds(s), how, of), alone),
  ];
}

/** The answer in a sentence, like the first of `figgen step`; `index` names one of two configurations. */
export function sentence(found, catalog, index = null) {
  const name = index === null ? "" : `Configuration ${"AB"[index]}: `;
  if (found.error) return `${index === null ? "This job" : name.slice(0, -2)} can't be computed: ${found.error.message}`;
  const { step, memory, setup, state } = found;
  const model = catalog.models[state.model]?.title ?? "Your model";
  const chip = catalog.accelerators[state.chip]?.title ?? "GPUs of your own";
  return name + step_sentence(model, setup.parallel.world_size, chip, step.step_time_s, step.step_time_interval_s ?? [], mfuOf(found), memory.fit_probability, memory.free_bytes, lossOf(found));
}
