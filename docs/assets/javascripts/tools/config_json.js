// A model's shape from the config.json of Hugging Face's transformers; mirrors
// figgen.scenarios.options.config_json, whose tables of kinds and names are printed for it. Pure.

import { InputError, unknown } from "../engine/errors.js";
import { record, shapeOf } from "../engine/records.js";
import { StateSpace } from "../models/shape/model_shape.js";
import { ownKinds, ownOf } from "./modeler_own.js";
import { readJson } from "./json.js";
import { readValue } from "./state.js";
import { tables } from "../config-tables.js";

const MOST = 2 ** 40;

/** The shape that the text of a config.json describes, as shapeOf makes it; throws InputError. */
export function shapeOfText(text) {
  let config;
  try {
    config = readJson(text);
  } catch {
    throw new InputError("the text", { expected: "a config.json" });
  }
  if (config === null || typeof config !== "object" || Array.isArray(config)) {
    throw new InputError("the text", { expected: "a config.json" });
  }
  return shapeOfConfig(tables, config);
}

/** The changes to a state that make the shape of a text its own; throws InputError for what no address can say. */
export function ownOfText(text) {
  const shape = shapeOfText(text);
  const own = ownOf(shape);
  const kinds = ownKinds();
  for (const [key, value] of Object.entries(own)) if (typeof value === "number") readValue(kinds, key, String(value));
  return { ...own, sequence: shape.sequence };
}

/** These changes in the modeler, where experts stay laid out as they were. */
export function configChanges(text) {
  const own = ownOfText(text);
  return { ...own, ...(!own.experts && { ep: 1, etp: null }) };
}

function shapeOfConfig({ types, fields, longest }, given) {
  const file = { ...given, ...(typeof given.text_config === "object" ? given.text_config : {}) };
  const kind = file.model_type;
  if (!Object.hasOwn(types, kind)) throw unknown("model_type", String(kind), Object.keys(types));
  const about = types[kind];
  const config = { ...about.usual, ...file };
  const count = (name, usual) => {
    const found = fields[name].map((one) => config[one]).find((one) => one !== null && one !== undefined) ?? usual;
    if (Number.isInteger(found) && found >= 0 && found <= MOST) return found;
    throw new InputError(fields[name].join(" or "), { expected: "a whole number", got: found ?? null });
  };
  const [layers, hidden, heads] = ["layers", "hidden", "heads"].map((name) => count(name));
  const latent = (config.kv_lora_rank ?? null) === null ? null : Object.fromEntries(
    ["query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim"].map((name) => [name, count(name)]));
  const kv_heads = count("kv_heads", heads);
  const head_dim = latent ? latent.nope_head_dim : count("head_dim", Math.floor(hidden / Math.max(heads, 1)));
  const experts = expertsOf(config, count, layers);
  const state_space = about.mixers ? mixersOf(config, count, layers, hidden) : null;
  // Beside routed experts a shared one is always there, and alone without them.
  const alone = about.mixers && config.num_local_experts === 0;
  const rows = heads + 2 * kv_heads;
  let extra = 0;
  const attending = state_space ? record(StateSpace, state_space).attention_before(layers) : layers;
  if (about.qkv_bias) extra = layers * rows * head_dim;
  else if (config.attention_bias && !about.bias) extra = attending * (rows * head_dim + hidden);
  if (experts) {
    const inner = layers - experts.dense_layers;
    extra += inner * ((about.shared_gate ? hidden : 0) + (about.router_offsets ? experts.count : 0));
  }
  return shapeOf({
    layers, hidden, heads, kv_heads, head_dim, ffn_hidden: count(alone ? "shared_hidden" : "ffn_hidden", 4 * hidden), vocab: count("vocab"),
    sequence: Math.min(count("sequence"), longest), ffn: about.ffn ?? "swiglu", norm: about.norm ?? "rmsnorm",
    norms_per_layer: about.norms_per_layer ?? 2, qk_norm: about.qk_norm ?? "none", bias: about.bias ?? false,
    tied_embeddings: config.tie_word_embeddings ?? about.tied ?? false,
    learned_positions: about.learned_positions ?? false, extra, experts, latent, state_space,
    ...("full_every" in about && { window: count("window", 0), full_every: count("full_every", about.full_every) }),
  });
}

// The mixers of a hybrid, null where every layer has attention.
function mixersOf(config, count, layers, hidden) {
  const what = "layers with attention";
  const kinds = config.attn_layer_indices ? [] : listed(config, "layer_types");
  const attending = config.attn_layer_indices ?? kinds.flatMap((kind, at) => (kind === "attention" ? [at] : []));
  if (!Array.isArray(attending) || !attending.every(Number.isInteger)) throw new InputError(what, { expected: "a list of numbers" });
  if (attending.length === layers) return null;
  let [attention_first, attention_every] = [0, 0];
  if (attending.length) {
    const [first, second] = [...attending, layers];
    [attention_first, attention_every] = [first, second - first];
    const even = attending.every((layer, at) => layer === first + at * attention_every);
    const last = first + attending.length * attention_every;
    if (attention_every < 1 || !even || last < layers) throw new InputError(what, { expected: "numbers at even distances" });
  }
  if (config.mamba_proj_bias) throw new InputError("mamba_proj_bias", { expected: "false", got: true });
  const mixer_heads = count("mixer_heads", 128);
  const inner = count("expand", 2) * hidden;
  if (!mixer_heads || inner % mixer_heads) throw new InputError("mamba_n_heads", { expected: `a divisor of ${inner}`, got: mixer_heads });
  return {
    mixer_heads, mixer_head_dim: inner / mixer_heads, state: count("state", 256), groups: count("groups", 1),
    convolution: count("convolution", 4), chunk: count("chunk", 256), attention_every, attention_first,
  };
}

// What a file lists by layer, nothing where it has no such list.
function listed(config, name) {
  const given = config[name] || [];
  if (Array.isArray(given)) return given;
  throw new InputError(name, { expected: "a list", got: given });
}

function expertsOf(config, count, layers) {
  const number = count("count", 0);
  if (!number) return null;
  const plain = listed(config, "mlp_only_layers");
  if (plain.some((layer, at) => layer !== at) || count("sparse_step", 1) !== 1) {
    throw new InputError("layers of experts", { expected: "one after the other, dense ones first" });
  }
  const width = count("expert_hidden", count("ffn_hidden"));
  const [together, one] = [count("shared_hidden", 0), Math.max(width, 1)];
  if (together % one) throw new InputError("a shared expert", { expected: `a multiple of ${width} wide` });
  return {
    count: number, top_k: count("top_k"), ffn_hidden: width, shared: count("shared", together / one),
    dense_layers: Math.min(layers - 1, Math.max(count("dense_layers", 0), plain.length)),
  };
}
