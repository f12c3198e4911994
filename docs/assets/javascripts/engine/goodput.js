// What failures leave of a layout's time; mirrors figgen.scenarios.planning.goodput_plan and saving.

import { best_interval_s, spare_nodes } from "../models/planner/reliability.js";
import { TABLES, checkpoint_size, checkpoint_write_time, goodput, job_mtbf, nodes_in_repair } from "../plan-memory.js";

const DAY_S = 86400;

/** One way to save the state of a job on so many GPUs, at the interval that keeps most of its time. */
export function kept({ parameters, recipe }, gpus, way, failures) {
  const [, gpu_mtbf_s] = TABLES.failures[failures];
  const { repair_s, confidence } = TABLES.saving;
  const mtbf_s = job_mtbf({ gpus, gpu_mtbf_s });
  const checkpoint_bytes = checkpoint_size({
    parameters,
    weight_bytes_per_param: recipe.weight_bytes, optimizer_bytes_per_param: recipe.optimizer_bytes,
  });
  const saving = savingOf(way, checkpoint_bytes, gpus);
  const interval_s = best_interval_s(saving.stall_s, mtbf_s, saving.lag_s);
  return {
    way, mtbf_s, checkpoint_bytes, saving, interval_s, goodput: goodput({ interval_s, mtbf_s, ...saving }),
    spares: spare_nodes(nodes_in_repair({ gpus, gpu_mtbf_s, repair_s }), confidence),
  };
}

/** Days until so many tokens are through. */
export const daysOf = (found, tokens, tokensPerStep, step_s) => ((tokens / tokensPerStep) * step_s) / found.goodput / DAY_S;

function savingOf(way, checkpoint_bytes, gpus) {
  const { copy, node, storage, restart_s, quick_restart_s } = TABLES.saving;
  const written = checkpoint_write_time({
    checkpoint_bytes, gpus, bandwidth_bytes_per_s: node, storage_bandwidth_bytes_per_s: storage,
  });
  const stall_s = checkpoint_bytes / gpus / copy;
  if (way === "storage") return { stall_s: written, lag_s: 0, restart_s: restart_s + written };
  if (way === "behind") return { stall_s, lag_s: written, restart_s: restart_s + written };
  const lag_s = checkpoint_bytes / gpus / node;
  return { stall_s, lag_s, restart_s: quick_restart_s + lag_s };
}
