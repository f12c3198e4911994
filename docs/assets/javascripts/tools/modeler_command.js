// The command line that asks what a configuration of the modeler asks. Pure.

import { USUAL } from "../engine/setup.js";
import { OWN } from "./modeler_state.js";

/** Whether everything in the state has a name that the command line knows. */
export const hasOwnNumbers = ({ model, chip, nic, alpha_up, alpha_net }) =>
  [model, chip, nic].includes(OWN) || alpha_up !== null || alpha_net !== null;

/** The arguments of `figgen step` and `figgen memory` for this configuration. */
export function commandOf(verb, state) {
  const words = ["figgen", verb, "--model", state.model, "--nodes", state.nodes, "--gpus-per-node", state.gpus];
  const put = (option, value, usual) => {
    if (value !== usual && value !== null) words.push(option, value);
  };
  for (const axis of ["tp", "cp", "pp", "ep"]) put(`--${axis}`, state[axis], 1);
  put("--etp", state.etp, null);
  put("--order", state.order, "megatron");
  put("--microbatches", state.microbatches, null);
  put("--microbatch-size", state.microbatch_size, 1);
  put("--sequence", state.sequence, null);
  put("--schedule", state.schedule, "1f1b");
  put("--chunks", state.chunks, null);
  put("--zero", state.zero, "1");
  put("--recipe", state.recipe, "mcore18");
  put("--recompute", state.recompute, "none");
  put("--activations", state.activations, "16-bit");
  put("--context-exchange", state.exchange, "p2p");
  put("--buckets", state.buckets, null);
  for (const [key, off, option] of [["sp", false, "--no-sequence-parallel"], ["flash", false, "--no-flash-attention"],
    ["dropout", true, "--dropout"], ["double", false, "--no-double-buffering"]]) {
    if (state[key] === off) words.push(option);
  }
  if (verb === "memory") {
    words.push("--accelerator", state.chip);
    put("--reserve", state.reserve === 4 ? null : `'${state.reserve} GB'`, null);
  } else {
    put("--accelerator", state.chip, USUAL.accelerator);
    put("--nic", state.nic, USUAL.nic);
    put("--dtype", state.dtype, USUAL.dtype);
    put("--efficiency", state.efficiency, USUAL.compute_efficiency);
    if (!state.overlap) words.push("--no-overlap");
  }
  return `${[...words, "--json"].join(" ")}`;
}
