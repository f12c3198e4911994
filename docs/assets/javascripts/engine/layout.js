// A parallel configuration on a cluster and its two meshes; mirrors figgen.models.machine.layout.
//
// Dense layers see TP·CP·DP·PP ranks, expert layers the same ranks as ETP·EP·EDP·PP: EP is no
// factor of the world size. DP and EDP are what is left over.

import { InputError, checkMost, repr } from "./errors.js";
import { EXPERT_NAMES, convention, fullOrder } from "./frameworks.js";
import { axisNames, checkSize, rankMesh } from "./mesh.js";
import { expertTp, nearestValid, problem } from "./nearest.js";

/** Largest world: what is beyond it is a slip of the pen, and would fill the memory. */
export const MOST_RANKS = 2 ** 20;

/**
 * A configuration with everything that can be derived left out. `order` is a name of CONVENTIONS or
 * an order string, fastest axis first. `dp` is never needed; when given it is checked.
 * Throws InputError with the reason and the nearest configurations that fit.
 */
export function layout({
  nodes, gpus_per_node, tp = 1, cp = 1, pp = 1, ep = 1, etp = null, dp = null, order = "megatron",
}) {
  const given = { nodes, gpus_per_node, tp, cp, pp, ep, etp, dp };
  for (const [name, size] of Object.entries(given)) {
    if (size === null && (name === "etp" || name === "dp")) continue;
    checkMost(name, checkSize(name, size), MOST_RANKS);
  }
  const chosen = convention(order);
  const wanted = { tp, cp, pp, ep, etp, dp };
  const world_size = nodes * gpus_per_node;
  checkMost("nodes × GPUs per node", world_size, MOST_RANKS);
  const found = problem(world_size, wanted, chosen);
  if (found) {
    const nearest = nearestValid(nodes, gpus_per_node, wanted, chosen);
    throw new InputError(found.what, { ...found, nearest });
  }
  const sizes = { tp, cp, pp, ep, etp: expertTp(wanted, chosen) };
  sizes.dp = world_size / (tp * cp * pp);
  sizes.edp = world_size / (sizes.etp * ep * pp);
  const has_experts = chosen.order.includes("ep");
  const axes = fullOrder(chosen.order);
  const mesh = (names) => rankMesh(names.map((name) => [name, sizes[name]]));
  return Object.freeze({
    nodes, gpus_per_node, ...sizes, order, convention: chosen, world_size, has_experts,
    dense: mesh(axes.filter((axis) => axis !== "ep")),
    expert: has_experts
      ? mesh(axes.filter((axis) => axis !== "cp").map((axis) => EXPERT_NAMES[axis]))
      : null,
  });
}

/** The mesh, dense or expert, on which `axes` ("tp", "dp-cp", "etp-ep" …) are defined. */
export function meshOf(parallel, axes) {
  const names = axisNames(axes);
  if (names.every((name) => parallel.dense.names.includes(name))) return parallel.dense;
  if (!names.every((name) => Object.values(EXPERT_NAMES).includes(name))) {
    const expected =
      "axes of the dense mesh (tp cp dp pp) or of the expert mesh (etp ep edp pp)";
    throw new InputError("axes of a communicator", { expected, got: names.join("-") });
  }
  if (parallel.expert) return parallel.expert;
  const what = `order ${repr(parallel.order)} lays out no experts`;
  throw new InputError(what, { expected: "ep in it" });
}
