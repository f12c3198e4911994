// What runs forward twice so that less is kept, and how wide kept activations are; mirrors
// figgen.models.shape.recomputation, activation_formats and layer_parts.

import { InputError, unknown } from "./errors.js";
import { mixerLayers, windowedLayers } from "./transformer.js";

export const MODULES = [
  "core_attn", "layernorm", "latent_norm", "mla_up_proj", "mlp", "moe", "moe_act", "moe_gate",
  "shared_experts", "every_second_product",
];

/** What is recomputed in experts without another product. */
export const SMALL = "layernorm,moe_act";

const NOTHING = { modules: new Set(), method: "", number: 1 };
const NAMED = {
  none: NOTHING,
  selective: { ...NOTHING, modules: new Set(["core_attn"]) },
  full: { ...NOTHING, method: "uniform" },
};

/** A recomputation by its name, as "uniform:2" or "block:3", or as modules with commas. */
export function recomputation(text) {
  if (Object.hasOwn(NAMED, text)) return NAMED[text];
  if (text.includes(":")) {
    const found = /^(uniform|block):([1-9][0-9]{0,3})$/.exec(text);
    const expected = "uniform:N or block:N with N from 1 to 9999 layers";
    if (!found) throw new InputError("recompute", { expected, got: text });
    return { ...NOTHING, method: found[1], number: Number(found[2]) };
  }
  const modules = text.split(",");
  const strange = modules.find((name) => !MODULES.includes(name));
  if (strange !== undefined) {
    throw unknown("module to recompute", strange, [...Object.keys(NAMED), ...MODULES]);
  }
  return { ...NOTHING, modules: new Set(modules) };
}

/** How many of a virtual stage's layers, the first ones, are recomputed whole. */
export const wholeLayers = ({ method, number }, layers) =>
  ({ "": 0, uniform: layers, block: Math.min(number, layers) })[method];

/** Inputs that the layers recomputed whole keep. */
export function keptInputs(again, layers) {
  const whole = wholeLayers(again, layers);
  return again.method === "uniform" ? Math.ceil(whole / again.number) : whole;
}

/** Numbers of layers by what they run in forward. */
export const partsOf = ({ layers, dense_layers: dense, expert_layers: experts, windowed_layers: windowed, mtp_layers, mixer_layers: mixers }) =>
  ({ attention: layers - mixers, up_projections: 0, core: layers - mixers, windowed, dense, routed: experts, shared: experts, projections: mtp_layers, mixers });

/** Numbers of layers by what they run once more in backward. */
export function repeatedParts({ recomputed: again, shape, flash_attention }, share) {
  const whole = wholeLayers(again, share.layers);
  const dense = Math.min(whole, share.dense_layers);
  const experts = whole - dense;
  const rest = (layers, ...names) => (names.some((name) => again.modules.has(name)) ? layers : 0);
  const mixtures = share.expert_layers - experts;
  const own = Math.min(whole, share.layers - share.mtp_layers);
  const mixers = mixerLayers(shape, share.first_layer, own);
  const attention = whole - mixers;
  return {
    attention, mixers,
    up_projections: shape.latent ? rest(share.layers - whole, "mla_up_proj") : 0,
    windowed: windowedLayers(shape, share.first_layer, own),
    core: attention + (flash_attention ? 0 : rest(share.layers - share.mixer_layers - attention, "core_attn")),
    dense: dense + rest(share.dense_layers - dense, "mlp"),
    routed: experts + rest(mixtures, "moe"),
    shared: experts + rest(mixtures, "moe", "shared_experts"),
    projections: Math.max(0, whole + share.mtp_layers - share.layers),
  };
}

const FP8 = 1 + 4 / 128; // with a scale for each tile of 1 × 128 elements

/** Bytes per element of what products read, experts' activations read, attention returns; sent. */
export const FORMATS = new Map(Object.entries({
  "16-bit": [2, 2, 2, 2, 0],
  fp8: [FP8, 2, 2, 2, 2],
  "fp8-weights": [FP8, 2, 2, 2, 0],
  "fp8-deepseek": [FP8, FP8, FP8 + 0.5, FP8, 0],
}).map(([name, [linear, gated, attention, dispatch, cast]]) =>
  [name, { linear, gated, attention, dispatch, cast }]));

export function activationFormat(name) {
  if (!FORMATS.has(name)) throw unknown("format of activations", name, FORMATS.keys());
  return FORMATS.get(name);
}
