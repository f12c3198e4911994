// The launch line of a layout for each framework; `taken.js` reads them back.
//
// Option names: NVIDIA/Megatron-LM megatron/training/arguments.py (parallel sizes,
// --use-tp-pp-dp-mapping); torch.distributed.device_mesh.init_device_mesh; deepspeedai/DeepSpeed
// deepspeed/runtime/pipe/topology.py (PipeModelDataParallelTopology, axes pipe, data, model) and
// deepspeed/moe/layer.py (ep_size, enable_expert_tensor_parallelism); pytorch/torchtitan
// torchtitan/config/parallelism.py and manager.py (--module and --config are required).

import { evaluate } from "./map_state.js";

const wide = (mesh) =>
  mesh.axes.map(([name, size], at) => [name, size, mesh.strides[at]]).filter(([, size]) => size > 1);

/** Whether `order` puts every rank of `parallel` where it is: axes of one rank do not count. */
export function sameRanks(parallel, order) {
  const { nodes, gpus_per_node: gpus, tp, cp, ep, etp, pp } = parallel;
  // Dense layers have no experts to divide: what an order says of them is no reason to refuse it.
  const divided = parallel.has_experts && (ep > 1 || etp !== tp);
  const other = evaluate({
    nodes, gpus, tp, cp, ep, etp: divided ? etp : null, dp: null, pp, order,
  }).parallel;
  if (!other) return false;
  const same = (mesh) => {
    const [here, there] = [
      wide(parallel[mesh]),
      new Map(wide(other[mesh]).map(([name, ...rest]) => [name, rest.join()])),
    ];
    return here.every(([name, ...rest]) => there.get(name) === rest.join());
  };
  return same("dense") && (!divided || (other.has_experts && same("expert")));
}

const torchrun = ({ nodes, gpus_per_node }) =>
  `torchrun --nnodes ${nodes} --nproc-per-node ${gpus_per_node} \\\n${nodes > 1 ? "  --node-rank $NODE_RANK --master-addr $MASTER_ADDR \\\n" : ""} `;
const lines = (first, options) =>
  [first, ...options.map(([name, value]) => `  --${name}${value === null ? "" : ` ${value}`}`)].join(
    " \\\n",
  );
const cannot = (who, { order }, because) => ({
  text: "",
  note: `${who} cannot place ranks like this: ${because ?? `it has no option for the order ${order}`}.`,
});

function megatron(parallel) {
  const order = ["megatron", "megatron-tp-pp-dp"].find((name) => sameRanks(parallel, name));
  if (!order) return cannot("Megatron-LM", parallel);
  const { tp, cp, pp, ep, etp } = parallel;
  const options = [
    ["tensor-model-parallel-size", tp],
    ["pipeline-model-parallel-size", pp],
  ];
  if (cp > 1) options.push(["context-parallel-size", cp]);
  if (ep > 1) options.push(["expert-model-parallel-size", ep]);
  if (ep > 1 || etp !== tp) options.push(["expert-tensor-parallel-size", etp]);
  if (order !== "megatron") options.push(["use-tp-pp-dp-mapping", null]);
  return {
    text: lines(`${torchrun(parallel)} pretrain_gpt.py`, options),
    note: `Data parallelism is what is left: ${parallel.dp}.${ep > 1 && tp > 1 ? " With experts and TP it also wants --sequence-parallel." : ""}${ep > 1 ? " Its default gathers all tokens for the experts; --moe-token-dispatcher-type alltoall sends copies." : ""}`,
  };
}

function pytorch(parallel) {
  const call = (name, mesh) => {
    const axes = [...mesh.axes].reverse(); // slowest first
    const sizes = axes.map(([, size]) => size).join(", ");
    return `${name} = init_device_mesh("cuda", (${sizes},), mesh_dim_names=(${axes.map(([axis]) => `"${axis}"`).join(", ")},))`.replaceAll(
      ",)",
      axes.length > 1 ? ")" : ",)",
    );
  };
  const calls = [call("dense", parallel.dense)];
  if (parallel.has_experts && (parallel.ep > 1 || parallel.etp !== parallel.tp))
    calls.push(call("expert", parallel.expert));
  return {
    text: ["from torch.distributed.device_mesh import init_device_mesh", "", ...calls].join("\n"),
    note: "A device mesh names its axes slowest first.",
  };
}

function deepspeed(parallel) {
  const { nodes, gpus_per_node, tp, cp, pp, dp, ep, etp } = parallel;
  if (cp > 1) return cannot("DeepSpeed's pipeline topology", parallel, "it has no context axis");
  if (ep > 1 && etp !== tp && etp !== 1)
    return cannot(
      "DeepSpeed's pipeline topology",
      parallel,
      "its experts have the tensor parallelism of the other layers, or none",
    );
  if (!sameRanks(parallel, "deepspeed")) return cannot("DeepSpeed's pipeline topology", parallel);
  const split = ep > 1 && etp > 1 ? ", enable_expert_tensor_parallelism=True" : "";
  const text = [
    `# deepspeed --num_nodes ${nodes} --num_gpus ${gpus_per_node} train.py`,
    "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology",
    "",
    `topology = PipeModelDataParallelTopology(num_pp=${pp}, num_mp=${tp}, num_dp=${dp})`,
    ...(ep > 1 ? [`# in the model: deepspeed.moe.layer.MoE(..., ep_size=${ep}${split})`] : []),
  ];
  return {
    text: text.join("\n"),
    note: "Give the topology to PipelineModule; its axes are pipe, data and model, slowest first.",
  };
}

function torchtitan(parallel) {
  const { tp, cp, pp, dp, ep, etp } = parallel;
  if (ep > 1 && etp !== 1)
    return cannot("torchtitan", parallel, "its experts are not split by tensor parallelism (ETP 1)");
  if (ep > 1 && ep < tp) return cannot("torchtitan", parallel, "it wants EP to be at least TP");
  if (!sameRanks(parallel, "torchtitan")) return cannot("torchtitan", parallel);
  const degrees = [
    ["data_parallel_replicate", 1],
    ["data_parallel_shard", dp],
    ["context_parallel", cp],
    ["tensor_parallel", tp],
    ["pipeline_parallel", pp],
    ["expert_parallel", ep],
  ];
  const options = degrees.map(([name, size]) => [`parallelism.${name}_degree`, size]);
  return {
    text: lines(`${torchrun(parallel)} -m torchtitan.train --module $MODULE --config $CONFIG`, options),
    note: "All of data parallelism is sharded here; a part of it may be replicated instead.",
  };
}

/** Name → [label, function of a layout that gives { text, note }]; text is empty where it cannot be said. */
export const LAUNCHERS = new Map([
  ["megatron", ["Megatron-LM", megatron]],
  ["pytorch", ["PyTorch", pytorch]],
  ["deepspeed", ["DeepSpeed", deepspeed]],
  ["torchtitan", ["torchtitan", torchtitan]],
]);
