// The fields of the modeler's form as data: key, label, how it is chosen, when it is shown.

import { SCHEDULES } from "../engine/schedule.js";
import { RECIPES } from "../engine/transformer.js";
import { RECOMPUTE_NAMES, SCHEDULE_NAMES } from "./changes.js";
import { nodesOf } from "./modeler_hardware.js";
import { ORDERS, OWN, nicsOf } from "./modeler_state.js";
import { plainNumber, quantity } from "./quantities.js";

const CHUNKED = ["interleaved-1f1b", "looped-bfs", "zb1p"];
const own = (key) => (state) => state[key] === OWN;
const mixture = (state, catalog) =>
  state.model === OWN ? state.experts !== null : Boolean(catalog.models[state.model]?.experts);

const select = (key, label, options, more = {}) => ({ key, label, kind: "select", options, wide: true, ...more });
const size = (key, label, more = {}) => ({ key, label, kind: "size", ...more });
const whole = (key, label, more = {}) => ({ key, label, kind: "whole", ...more });
const number = (key, label, more = {}) => ({ key, label, kind: "number", ...more });
const check = (key, label, more = {}) => ({ key, label, kind: "check", wide: true, ...more });

const RECIPE_NAMES = (name, { weight_bytes: w, gradient_bytes: g, optimizer_bytes: o }) =>
  `${name}: ${w} + ${g} + ${o} B per parameter`;
const titled = (entries, last) => [...entries.map(([name, { title }]) => [name, title]), [OWN, last]];

/** Groups of the form: { title, open, fields, says(state, found) }; a field has `hint`, `shows(state, catalog)`. */
export function groupsOf(catalog) {
  const rate = ([name, { title, bandwidth_bytes_per_s, per }]) => [
    name,
    `${title}: ${quantity(bandwidth_bytes_per_s, "B/s")} per ${per}`,
  ];
  const nccl = (key) => String(Math.round(1e8 * catalog.latencies[key]) / 100);
  return [
    {
      title: "Model",
      open: true,
      says: ({ model }) => catalog.models[model]?.title ?? "own shape",
      fields: [
        select("model", "Model", titled(Object.entries(catalog.models), "Own shape …")),
        ...[
          ["layers", "Layers"],
          ["hidden", "Hidden width"],
          ["heads", "Attention heads"],
          ["kv_heads", "KV heads"],
          ["ffn_hidden", "FFN width"],
          ["vocab", "Vocabulary"],
        ].map(([key, label]) => whole(key, label, { shows: own("model") })),
        select(
          "ffn",
          "FFN",
          [
            ["swiglu", "SwiGLU, three matrices"],
            ["gelu", "GELU, two matrices"],
          ],
          { shows: own("model") },
        ),
        whole("experts", "Experts", { shows: own("model"), empty: "none" }),
        ...[
          ["top_k", "Experts per token"],
          ["expert_ffn", "FFN width of an expert"],
        ].map(([key, label]) => whole(key, label, { shows: (state) => state.model === OWN && state.experts !== null })),
      ],
    },
    {
      title: "Hardware",
      open: true,
      nodes: nodesOf(catalog),
      says: ({ nodes, gpus, chip, nic }) =>
        `${plainNumber(nodes)} × ${gpus} ${catalog.accelerators[chip]?.title ?? "own GPUs"}, ${catalog.links[nic]?.title ?? "own links"}`,
      fields: [
        size("nodes", "Nodes"),
        size("gpus", "GPUs per node", { hint: "behind the fast links" }),
        select("chip", "Accelerator", titled(Object.entries(catalog.accelerators), "Own numbers …")),
        number("peak", "Dense peak, TFLOP/s", { shows: own("chip") }),
        number("hbm", "Memory, GB", { shows: own("chip") }),
        number("up", "Link inside a node, GB/s", { shows: own("chip"), wide: true, hint: "per GPU and direction" }),
        select("nic", "Network link of a GPU", [...nicsOf(catalog).map(rate), [OWN, "Own number …"]]),
        number("net", "Network link, GB/s", { shows: own("nic"), wide: true, hint: "per GPU and direction" }),
      ],
    },
    {
      title: "Parallelism",
      open: true,
      says: ({ tp, pp, cp, ep }, { setup }) =>
        `TP ${tp}, PP ${pp}, CP ${cp}${ep > 1 ? `, EP ${ep}` : ""}, DP ${setup?.parallel.dp ?? "–"}`,
      fields: [
        size("tp", "TP, tensor", { hint: "parts of each layer" }),
        size("pp", "PP, pipeline", { hint: "stages of layers" }),
        size("cp", "CP, context", { hint: "parts of a sequence" }),
        { key: "dp", label: "DP, data", kind: "derived", hint: "replicas: what is left" },
        size("ep", "EP, expert", {
          hint: "parts of the experts", shows: (state, all) => mixture(state, all) || state.ep > 1 }),
        whole("etp", "ETP, in experts", {
          hint: "parts of each expert",
          shows: (state, all) => mixture(state, all) || state.etp !== null,
          empty: "auto",
        }),
        select("order", "Rank order", ORDERS, { hint: "decides which groups stay inside a node" }),
      ],
    },
    {
      title: "Batch and schedule",
      open: true,
      says: ({ pp, schedule }, { setup }) =>
        setup
          ? `${plainNumber(setup.global_batch)} × ${plainNumber(setup.sequence)} tokens, ${plainNumber(setup.microbatches)} microbatches${pp > 1 ? `, ${SCHEDULE_NAMES[schedule]}` : ""}`
          : "–",
      fields: [
        size("microbatches", "Microbatches", { derived: "microbatches", hint: "per replica and step" }),
        size("microbatch_size", "Microbatch size", { hint: "sequences in each" }),
        { key: "global_batch", label: "Global batch", kind: "batch", hint: "sequences per step" },
        whole("sequence", "Sequence length", { derived: "sequence", hint: "tokens; empty: the model's" }),
        { key: "hold", label: "Hold the global batch: microbatches follow", kind: "hold", wide: true },
        select(
          "schedule",
          "Pipeline schedule",
          [...SCHEDULES.keys()].map((name) => [name, SCHEDULE_NAMES[name]]),
          { shows: (state) => state.pp > 1 || state.schedule !== "1f1b" },
        ),
        whole("chunks", "Chunks per rank", {
          empty: "auto",
          hint: "stages that a rank holds",
          shows: ({ schedule, chunks }) => CHUNKED.includes(schedule) || chunks !== null,
        }),
      ],
    },
    {
      title: "State and activations",
      says: ({ zero, recipe, recompute, dtype }) =>
        `ZeRO ${zero}, ${recipe}, recompute ${(RECOMPUTE_NAMES[recompute] ?? recompute.replaceAll(",", ", ")).split(":")[0]}, ${dtype.toUpperCase()}`,
      fields: [
        select("zero", "ZeRO stage", [
          ["0", "0: nothing divided"],
          ["1", "1: optimizer state"],
          ["2", "2: and gradients"],
          ["3", "3: and weights (FSDP)"],
        ]),
        select(
          "recipe",
          "Precision of the state",
          [...RECIPES].map(([name, recipe]) => [name, RECIPE_NAMES(name, recipe)]),
        ),
        select("recompute", "Recomputation", Object.entries(RECOMPUTE_NAMES)),
        select("activations", "Kept activations", [
          ["16-bit", "16 bits"],
          ["fp8", "FP8 where only products read them"],
          ["fp8-deepseek", "FP8 as in DeepSeek-V3"],
        ]),
        select("dtype", "Number format of products", [
          ["bf16", "BF16"],
          ["fp16", "FP16"],
          ["fp8", "FP8"],
          ["fp4", "FP4"],
          ["tf32", "TF32"],
        ]),
        check("sp", "Sequence parallelism: TP divides norms too"),
        check("flash", "FlashAttention: no score matrix, causal half"),
        check("dropout", "Dropout: masks are kept"),
        number("reserve", "Reserve, GB", { hint: "contexts, fragmentation" }),
      ],
    },
    {
      title: "Overlap and efficiency",
      says: ({ efficiency, overlap }) => `${plainNumber(100 * efficiency)}% of the peak, overlap ${overlap ? "on" : "off"}`,
      fields: [
        number("efficiency", "Efficiency of products", { hint: "share of the dense peak" }),
        whole("buckets", "Gradient buckets", { empty: "auto", hint: "auto: one per layer" }),
        check("overlap", "Data parallelism behind computing"),
        check("double", "Double buffering of keys and weights"),
        select(
          "exchange",
          "Exchange of keys and values",
          [
            ["p2p", "ring of sends"],
            ["all-gather", "all-gather"],
          ],
          { shows: (state) => state.cp > 1 },
        ),
        number("alpha_up", "Latency in a node, µs", { empty: nccl("scale_up_s"), hint: "empty: NCCL's" }),
        number("alpha_net", "Latency of network, µs", { empty: nccl("network_s"), hint: "empty: NCCL's" }),
      ],
    },
  ];
}

/** A value as it stands in its control. */
export const written = (value) => (value === null || value === undefined ? "" : String(value));

/** Presets as groups of a select. */
export const presetGroups = (presets) => [
  ["Published runs", presets.filter(({ kind }) => kind === "training").map(({ name, title }) => [name, title])],
  ["Layouts of the rank map", presets.filter(({ kind }) => kind === "map").map(({ name, title }) => [name, title])],
];
