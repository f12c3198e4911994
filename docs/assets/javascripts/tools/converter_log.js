// What a reader pastes into the converter: a log, a speed of training, or a job for other tools. Loaded then.

import { InputError } from "../engine/errors.js";
import { typed_speed } from "../scenarios/verdict/words.js";
import { fullOf } from "./converter_model.js";
import { el } from "./dom.js";
import { readLog, told } from "./logs.js";

const EXPECTED = "Expected a table of nccl-tests, mscclpp-test or ucc_perftest, step lines of a training framework, a speed such as 7000 tokens/s, or PyTorch's message of an out-of-memory error or a time-out.";

/**
 * { shown, typed } of a text: elements, and values of fields if it is a table; `state` has the fields of
 * the converter, `collectives` are those that it knows, and links open the `job`.
 */
export async function readBrought(text, state, collectives, job) {
  const found = readLog(text, (log) => log.ranks > 1 ? fullOf(state, log.collective, log.ranks, log.ranks_per_node || state.width) : null);
  const speed = found ? speedOf(found.log) : isSpeed(text) && text.trim();
  const typed = found?.log.rows && fieldsOf(found.log, collectives);
  if (speed) return { typed, shown: [...(found?.shown ?? []), ...judged(speed, job)] };
  if (found) return { typed, shown: found.shown };
  const { elsewhere } = await import("./elsewhere.js");
  return { shown: elsewhere(text) ?? [told(["bad", EXPECTED])] };
}

// The largest message of a table, as it would be typed.
function fieldsOf({ collective, ranks, ranks_per_node: width, rows }, collectives) {
  const { message_bytes, time_s } = rows.at(-1);
  return {
    bytes: `${message_bytes} B`, known: "time", time: `${Number((1e6 * time_s).toPrecision(6))} us`,
    ...(collectives.some(([name]) => name === collective) && { collective }),
    ...(ranks > 1 && { ranks: String(ranks) }), ...(width && { width: String(width) }),
  };
}

// The speed in step lines, as the modeler reads it.
const speedOf = ({ steps, tokens_per_s_per_gpu: rate, step_time_s: time, flops_per_s_per_gpu: flops }) =>
  steps && ((rate && `${rate} tokens/s`) || (time && `${time} s`) || (flops && `${flops / 1e12} TFLOP/s`));

function isSpeed(text) {
  try {
    return /[a-df-z%:]/i.test(text) && Boolean(typed_speed(text));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return false;
  }
}

// MFU takes a model and a chip, which the modeler has.
function judged(speed, job) {
  const link = el("a", { href: `../modeler/?${job}#is-my-number-good=${encodeURIComponent(speed)}` }, `Is ${speed} good?`);
  return [el("p", {}, "A speed becomes an MFU with a model and a GPU. The modeler has both: ", link)];
}
