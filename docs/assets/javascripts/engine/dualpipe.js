// DualPipe and its halved form: forwards and backwards of opposite flows run as pairs; mirrors
// figgen.models.pipeline.dualpipe.

import { InputError } from "./errors.js";
import { placement, range, schedule, vShape } from "./orders.js";
import { writeOrder } from "./split_backward.js";

/** Two copies of the model, microbatches fed from both ends; P even, M an even number ≥ 2P. */
export function dualpipe(stages, microbatches) {
  if (stages % 2) refuse("stages of schedule 'dualpipe'", "an even number", stages);
  if (microbatches % 2 || microbatches < 2 * stages) {
    const expected = `an even number ≥ 2 × stages = ${2 * stages}`;
    refuse("microbatches of schedule 'dualpipe'", expected, microbatches);
  }
  const half = microbatches / 2;
  const written = range(stages).map((rank) => {
    const fromEnd = Math.min(rank, stages - 1 - rank);
    const [held, first] = [[rank, 2 * stages - 1 - rank], [0, half]];
    if (rank >= stages / 2) {
      held.reverse();
      first.reverse();
    }
    return writeOrder(phases(fromEnd, stages / 2, half), held, first);
  });
  const holders = vShape(stages).rank_of_stage;
  return paired("dualpipe", placement("bidirectional", holders, 2), microbatches, written);
}

/** One copy of the model, two chunks per rank in a V; M ≥ 2P. */
export function dualpipev(stages, microbatches) {
  if (microbatches < 2 * stages) {
    const expected = `at least 2 × stages = ${2 * stages}`;
    refuse("microbatches of schedule 'dualpipev'", expected, microbatches);
  }
  const written = range(stages).map((rank) =>
    writeOrder(phases(rank, stages, microbatches), [rank, 2 * stages - 1 - rank]),
  );
  return paired("dualpipev", vShape(stages), microbatches, written);
}

function refuse(what, expected, got) {
  throw new InputError(what, { expected, got });
}

// What the rank `fromEnd` places from its end of the pipe does, to `flow` microbatches of either
// direction. Side 0 comes from the near end, `half` ranks away from the middle.
function phases(fromEnd, half, flow) {
  const inward = half - fromEnd - 1;
  // The rank in the middle runs its first pair one after the other: it has nothing to wait for.
  const firstPair = inward === 0 ? "F0 B1" : "F0&B1";
  const steady = flow - 2 * half + fromEnd + 1;
  const alternate = range(2 * (fromEnd + 1)).map((place) => `B${1 - (place % 2)}`);
  const late = alternate.splice(fromEnd + 1).map((word) => word.replace("B", "I"));
  return [
    ["F0", 2 * inward],
    ["F0 F1", fromEnd + 1],
    ["I1 W F1", inward],
    [`${firstPair} F1&B0`, 1],
    ["F0&B1 F1&B0", steady - 1],
    ["B1 F1&B0", inward],
    [[...alternate, ...late].join(" "), 1],
    ["W I0", inward],
    ["W", fromEnd + 1],
  ];
}

function paired(name, placed, microbatches, written) {
  const code = ([kind, stage, microbatch]) => 4 * (stage * microbatches + microbatch) + kind;
  const orders = written.map(({ order }) => order.map(code));
  const overlapped = new Set(written.flatMap((one) => one.overlapped.map(code)));
  return schedule(name, placed, microbatches, orders, overlapped);
}
