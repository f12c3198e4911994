// Rank orders by the name of the framework that uses them; mirrors figgen.models.machine.frameworks.
//
// An order lists the axes fastest first. Without "ep" it orders the dense mesh (TP, CP, DP, PP),
// without "cp" the expert mesh (ETP, EP, EDP, PP), both over the same ranks.

import { InputError, repr, unknown } from "./errors.js";

export const AXES = Object.freeze(["tp", "cp", "ep", "dp", "pp"]);

/** How the axes of an order are called on the expert mesh. */
export const EXPERT_NAMES = Object.freeze({ tp: "etp", ep: "ep", dp: "edp", pp: "pp" });

// `etp` is the expert tensor-parallel size that the framework takes when none is given: "tp" (the
// same) or 1. With `etp_fixed` it accepts no other.
const all = [
  ["megatron", "Megatron-Core", "tp-cp-ep-dp-pp", "tp", false],
  ["megatron-tp-pp-dp", "Megatron-Core with --use-tp-pp-dp-mapping", "tp-cp-ep-pp-dp", "tp", false],
  ["llama3", "Llama 3", "tp-cp-pp-dp", "tp", true],
  ["torchtitan", "torchtitan", "tp-cp-ep-dp-pp", 1, true],
  ["deepspeed", "DeepSpeed pipeline topology", "tp-ep-dp-pp", 1, false],
  ["nanotron", "nanotron", "tp-cp-dp-pp", "tp", true],
  ["nanotron-moe", "nanotron with experts", "tp-cp-ep-pp-dp", 1, false],
].map(([name, label, order, etp, etp_fixed]) =>
  Object.freeze({ name, label, order: Object.freeze(order.split("-")), etp, etp_fixed }),
);

/** Conventions by name, in the order in which a reader is offered them. */
export const CONVENTIONS = new Map(all.map((found) => [found.name, found]));

/** The convention called `order`, or one read from an order string such as "tp-cp-dp-pp". */
export function convention(order) {
  if (CONVENTIONS.has(order)) return CONVENTIONS.get(order);
  const axes = order.split("-");
  if (axes.length < 2 || !axes.some((axis) => AXES.includes(axis))) {
    throw unknown("rank order", order, CONVENTIONS.keys());
  }
  for (const axis of axes) {
    if (!AXES.includes(axis)) throw unknown("axis of a rank order", axis, AXES);
  }
  if (new Set(axes).size !== axes.length) {
    throw new InputError(`rank order ${repr(order)}`, { expected: "each axis once" });
  }
  return Object.freeze({ name: order, label: order, order: axes, etp: "tp", etp_fixed: false });
}

/** `order` with the axes that it leaves out (all of size 1) appended as slowest. */
export const fullOrder = (order) => [...order, ...AXES.filter((axis) => !order.includes(axis))];
