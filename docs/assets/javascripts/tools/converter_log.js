// What a reader pastes into the converter: a log, a speed of training, or a job for other tools. Loaded then.

import { InputError } from "../engine/errors.js";
import { typed_speed } from "../scenarios/verdict/words.js";
import { el } from "./dom.js";
import { jobIn } from "./job_carried.js";
import { readLog, told } from "./logs.js";

const EXPECTED = "Expected a table of nccl-tests, mscclpp-test or ucc_perftest, step lines of a training framework, a speed such as 7000 tokens/s, or PyTorch's message of an out-of-memory error or a time-out.";

/** { shown, log } of a text: elements, and the log if it is one; `lineRate` is that of `readLog`. */
export async function readBrought(text, lineRate) {
  const found = readLog(text, lineRate);
  const speed = found ? speedOf(found.log) : isSpeed(text) && text.trim();
  if (speed) return { log: found?.log, shown: [...(found?.shown ?? []), ...judged(speed)] };
  if (found) return found;
  const { elsewhere } = await import("./elsewhere.js");
  return { shown: elsewhere(text) ?? [told(["bad", EXPECTED])] };
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
function judged(speed) {
  const link = el("a", { href: `../modeler/?${jobIn(location.search)}#is-my-number-good=${encodeURIComponent(speed)}` }, `Is ${speed} good?`);
  return [el("p", {}, "A speed becomes an MFU with a model and a GPU. The modeler has both: ", link)];
}
