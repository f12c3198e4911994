// What a virtual stage sends: kinds of call, how often, how many bytes; mirrors
// figgen.models.step.layer_traffic, data_traffic and step_traffic.

import { pipeline_boundary_bytes } from "../step-formulas.js";
import { copiesEmbedding, tableHeld } from "./held.js";
import { ACTIVATION_BYTES } from "./activations.js";
import { keyValueWidth } from "./memory.js";
import { partsOf, repeatedParts } from "./recomputation.js";

/** When a call is made: in every forward or backward of a microbatch, or once per step. */
const [FORWARD, BACKWARD, START, END] = ["forward", "backward", "start", "end"];
export { FORWARD, BACKWARD, START, END };

const [LAYERS, AGAIN, TABLES, HEAD_AGAIN, KEYS] = [
  "layers", "inputs gathered again", "embedding and head", "input of the head gathered again",
  "keys and values",
];
export { LAYERS, AGAIN, TABLES, HEAD_AGAIN, KEYS };
const [HEADS, TOKENS, WITHIN, BOUNDARY] =
  ["heads of mixers", "routed tokens", "routed tokens within an expert", "activations and gradients"];
export { TOKENS, WITHIN, BOUNDARY };
const [GRADIENTS, WEIGHTS, TIED] =
  ["gradients", "weights", "gradients of the tied table"];
export { GRADIENTS, WEIGHTS, TIED };
const [SEND, GATHER, SCATTER, REDUCE, ALL_TO_ALL] =
  ["send", "all-gather", "reduce-scatter", "all-reduce", "all-to-all"];
export { SEND, GATHER, SCATTER, REDUCE, ALL_TO_ALL };

/** How often a rank sends (n − 1)/n of the buffer. */
export const PASSES = { [REDUCE]: 2, [GATHER]: 1, [SCATTER]: 1, [ALL_TO_ALL]: 1 };

/** Everything that a rank of a virtual stage sends, one entry for equal calls. */
export function stageTraffic(setup, held, stage) {
  // Calls of a microbatch and of data parallelism are merged apart, as their axes differ.
  const calls = new Map();
  const call = (axis, purpose, collective, phase, number, buffer_bytes, size) => {
    if ((size <= 1 && collective !== SEND) || !number) return;
    const key = [axis, purpose, collective, phase, buffer_bytes].join("|");
    const known = calls.get(key);
    if (known) known.calls += number;
    else {
      const sent_bytes = collective === SEND ? buffer_bytes
        : ((PASSES[collective] * (size - 1)) / size) * buffer_bytes;
      const per_microbatch = phase === FORWARD || phase === BACKWARD;
      calls.set(key, {
        axis, purpose, collective, phase, calls: number, buffer_bytes, size, sent_bytes,
        per_microbatch,
      });
    }
  };
  const share = setup.shares[stage];
  tensor(setup, share, call);
  projections(setup, share, call);
  tables(setup, share, call);
  context(setup, share, call);
  if (share.mixer_layers) heads(setup, share.mixer_layers, repeatedParts(setup, share).mixers, call);
  experts(setup, share, call);
  pipeline(setup, stage, call);
  data(setup, held[stage], stage, call);
  return [...calls.values()];
}

// Two blocks a layer, each with one exchange on its way in and one on its way out.
function tensor(setup, share, call) {
  const { shape, tokens, parallel: { tp } } = setup;
  const mla = shape.latent;
  const attention = mla ? mla.query_rank + mla.kv_rank + mla.rope_head_dim : shape.hidden;
  const shared = shape.experts?.shared ? 1 : 0;
  const [forward, again] = [partsOf(share), repeatedParts(setup, share)];
  const second = (parts) => parts.dense + shared * parts.shared;
  const whole = tokens * shape.hidden * ACTIVATION_BYTES;
  const kinds = [
    [attention, forward.attention + forward.mixers, again.attention + again.mixers, again.up_projections],
    [shape.hidden, second(forward), second(again), 0],
  ];
  for (const [width, blocks, repeated, gathers] of kinds) {
    const inward = tokens * width * ACTIVATION_BYTES;
    for (const [phase, times, more] of [[FORWARD, blocks, 0], [BACKWARD, repeated, gathers]]) {
      if (setup.sequence_parallel) {
        call("tp", LAYERS, GATHER, phase, times + more, inward, tp);
        call("tp", LAYERS, SCATTER, phase, times, whole, tp);
      } else call("tp", LAYERS, REDUCE, phase, times, whole, tp);
    }
    if (setup.sequence_parallel) {
      call("tp", LAYERS, GATHER, BACKWARD, blocks, whole, tp);
      call("tp", LAYERS, SCATTER, BACKWARD, blocks, inward, tp);
      call("tp", AGAIN, GATHER, BACKWARD, blocks, inward, tp);
    } else call("tp", LAYERS, REDUCE, BACKWARD, blocks, inward, tp);
  }
}

// A module that predicts one token more projects two hidden states to one.
function projections(setup, share, call) {
  const one = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES;
  const times = share.mtp_layers;
  const each = (purpose, collective, phase, number, bytes) =>
    call("tp", purpose, collective, phase, number, bytes, setup.parallel.tp);
  for (const [phase, number] of [[FORWARD, times], [BACKWARD, repeatedParts(setup, share).projections]]) {
    if (setup.sequence_parallel) each(LAYERS, GATHER, phase, number, 2 * one);
    each(LAYERS, GATHER, phase, number, one);
  }
  if (setup.sequence_parallel) {
    each(LAYERS, GATHER, BACKWARD, times, one);
    each(LAYERS, SCATTER, BACKWARD, times, 2 * one);
    each(AGAIN, GATHER, BACKWARD, times, 2 * one);
  } else each(LAYERS, REDUCE, BACKWARD, times, 2 * one);
}

// The embedding ends in a sum over its shards, the head begins with a gather.
function tables(setup, { embedding, head, mtp_layers }, call) {
  const { tp } = setup.parallel;
  const whole = setup.tokens * setup.shape.hidden * ACTIVATION_BYTES;
  const [embeddings, heads] = [embedding + mtp_layers, head * (1 + mtp_layers)];
  const one = (purpose, collective, phase, times) => call("tp", purpose, collective, phase, times, whole, tp);
  if (setup.sequence_parallel) {
    one(TABLES, SCATTER, FORWARD, embeddings);
    one(TABLES, GATHER, BACKWARD, embeddings);
    one(TABLES, GATHER, FORWARD, heads);
    one(TABLES, SCATTER, BACKWARD, heads);
    one(HEAD_AGAIN, GATHER, BACKWARD, heads);
    return;
  }
  one(TABLES, REDUCE, FORWARD, embeddings);
  one(TABLES, REDUCE, BACKWARD, heads);
}

// Keys and values forward, again backward, and then their gradients.
function context(setup, share, call) {
  const { cp } = setup.parallel;
  if (cp === 1) return;
  const layers = share.layers - share.mixer_layers;
  const again = layers + repeatedParts(setup, share).core;
  const width = 2 * keyValueWidth(setup) * ACTIVATION_BYTES;
  if (setup.context_exchange === "p2p") {
    const [block, sends] = [setup.tokens * width, cp - 1];
    call("cp", KEYS, SEND, FORWARD, layers * sends, block, cp);
    call("cp", KEYS, SEND, BACKWARD, (again + layers) * sends, block, cp);
    return;
  }
  const whole = setup.tokens * cp * width;
  call("cp", KEYS, GATHER, FORWARD, layers, whole, cp);
  call("cp", KEYS, GATHER, BACKWARD, again, whole, cp);
  call("cp", KEYS, SCATTER, BACKWARD, layers, whole, cp);
}

// A mixer has some heads over the whole sequence: gate, input, both maps, steps, and back.
function heads({ shape: { state_space: mixers }, tokens, parallel: { tp, cp } }, layers, again, call) {
  const maps = Math.max(mixers.groups / tp, cp) * mixers.state;
  for (const [width, calls] of [[mixers.inner / tp, 3], [maps, 2], [mixers.mixer_heads / tp, 1]]) {
    const size = tokens * width * ACTIVATION_BYTES;
    call("cp", HEADS, ALL_TO_ALL, FORWARD, layers * calls, size, cp);
    call("cp", HEADS, ALL_TO_ALL, BACKWARD, (layers + again) * calls, size, cp);
  }
}

// Tokens to their experts and back; divided experts gather the tokens of all their ranks.
function experts(setup, share, call) {
  const { shape, parallel: { ep, etp } } = setup;
  if (!shape.experts || !share.expert_layers) return;
  const elements = setup.split_tokens * shape.experts.top_k * shape.hidden;
  const dispatched = elements * setup.format.dispatch;
  const returned = elements * ACTIVATION_BYTES;
  const backward = share.expert_layers + repeatedParts(setup, share).routed;
  for (const [phase, layers] of [[FORWARD, share.expert_layers], [BACKWARD, backward]]) {
    for (const routed of [dispatched, returned]) {
      call("ep", TOKENS, ALL_TO_ALL, phase, layers, routed, ep);
    }
    call("etp", WITHIN, GATHER, phase, layers, etp * dispatched, etp);
    call("etp", WITHIN, SCATTER, phase, layers, etp * returned, etp);
  }
}

// One activation to the stage ahead and one gradient to the stage behind, if elsewhere.
function pipeline({ placement, parallel: { pp }, shape, split_tokens }, stage, call) {
  const { rank_of_stage: holder, depth } = placement;
  const whole = pipeline_boundary_bytes({
    microbatch_size: 1, sequence_length: split_tokens, hidden: shape.hidden,
    bytes_per_element: ACTIVATION_BYTES,
  });
  const elsewhere = (other) => holder[other] !== holder[stage];
  if ((stage + 1) % depth && elsewhere(stage + 1)) {
    call("pp", BOUNDARY, SEND, FORWARD, 1, whole, pp);
  }
  if (stage % depth && elsewhere(stage - 1)) call("pp", BOUNDARY, SEND, BACKWARD, 1, whole, pp);
}

// Gradients, sharded weights, a tied table.
function data(setup, held, stage, call) {
  const share = setup.shares[stage];
  const units = share.layers + share.embedding + share.head + copiesEmbedding(setup, stage);
  const { trained, frozen } = held.kept;
  group(setup, setup.dense_data_axis, setup.dense_shards, trained[0], frozen[0], units, call);
  group(setup, "edp", setup.parallel.edp, trained[1], frozen[1], share.expert_layers, call);
  if (copiesTable(setup, stage)) {
    const size = tableHeld(setup) * setup.recipe.gradient_bytes;
    call("embedding", TIED, REDUCE, END, 1, size, 2);
  }
}

// One group's share of the parameters in equal buckets, by default one per layer or table; what is
// frozen moves only where it is gathered.
function group({ recipe, zero_stage, sharded, buckets: asked }, axis, size, trained, frozen, units, call) {
  const buckets = asked ?? units;
  const send = (purpose, collective, phase, whole) => whole && call(axis, purpose, collective, phase, buckets, whole / buckets, size);
  const gradients = trained * recipe.gradient_bytes;
  const weights = trained * recipe.weight_bytes + (sharded.gathers ? frozen : 0);
  if (zero_stage === 0) {
    send(GRADIENTS, REDUCE, END, gradients);
    return;
  }
  send(GRADIENTS, SCATTER, sharded.scatters ? BACKWARD : END, gradients);
  for (const phase of sharded.gathers ? [FORWARD, BACKWARD] : [START]) send(WEIGHTS, GATHER, phase, weights);
}

// Whether this stage holds one of two copies of a table, tied or for modules that predict more tokens.
function copiesTable({ shape, mtp_layers, shares, stagesOf, placement, lora_rank }, stage) {
  const share = shares[stage];
  if (lora_rank !== null || !(shape.tied_embeddings || mtp_layers) || !(share.embedding || share.head)) return false;
  const ends = stagesOf[placement.rank_of_stage[stage]].map((one) => shares[one]);
  return !(ends.some((end) => end.embedding) && ends.some((end) => end.head));
}
