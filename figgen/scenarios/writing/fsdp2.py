"""Writes a short PyTorch program that trains a job under FSDP2.

Calls: torch.distributed.fsdp.fully_shard and MixedPrecisionPolicy, torch 2.6 and later;
huggingface/transformers 5.24, AutoModelForCausalLM.from_config.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.model_file import model_fields
from figgen.scenarios.writing.trainers import trainer_refused
from figgen.scenarios.writing.written import (
    JobToWrite,
    Written,
    leave_out_rest,
    named,
    refusal,
)

PROGRAM = """
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (REPLICAS,), mesh_dim_names=("dp",))
with torch.device("meta"):
    config = AutoConfig.for_model(**model_fields)
    model = AutoModelForCausalLM.from_config(config)
if gradient_checkpointing:
    model.gradient_checkpointing_enable({"use_reentrant": False})
policy = MixedPrecisionPolicy(param_dtype=getattr(torch, dtype), reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=RESHARD)
fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=RESHARD)
model.to_empty(device="cuda")
model.init_weights()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(50):
    for _ in range(gradient_accumulation_steps):
        tokens = torch.randint(config.vocab_size, (micro_batch_size, seq_length), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if mesh.get_rank() == 0:
        print(step, loss.item() * gradient_accumulation_steps)
torch.distributed.destroy_process_group()
"""


def fsdp2(job: JobToWrite) -> Written:
    """Write the program that trains a job under FSDP2."""
    setup = job.setup
    why = trainer_refused(job, "This program")
    if why:
        return refusal(why)
    if setup.zero_stage < 2:
        return refusal("FSDP2 shards gradients at least (ZeRO 2)")
    left_out = _left_out(job, setup)
    parallel = job.parallel
    sizes = f"--nnodes {parallel.nodes} --nproc-per-node {parallel.gpus_per_node}"
    where = " --node-rank $NODE_RANK --master-addr $MASTER_ADDR" if parallel.nodes > 1 else ""
    fields = model_fields(setup.shape, setup.sequence)
    lines = [
        f"# PyTorch FSDP2: {named(job)}",
        f"# torchrun {sizes}{where} train.py",
        *[f"# Not in this file: {name}, {why}." for name, why in left_out.items()],
        "import os",
        "",
        "import torch",
        "from torch.distributed.device_mesh import init_device_mesh",
        "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard",
        "from transformers import AutoConfig, AutoModelForCausalLM",
        "",
        f"micro_batch_size = {setup.microbatch_size}",
        f"gradient_accumulation_steps = {setup.microbatches}",
        f"seq_length = {setup.sequence}",
        f"gradient_checkpointing = {_truth(setup.recompute == 'full')}",
        'dtype = "bfloat16"',
        "model_fields = dict(",
        *[f"    {name}={_python(value)}," for name, value in fields],
        ")",
    ]
    program = PROGRAM.replace("RESHARD", _truth(setup.zero_stage == 3))
    program = program.replace("REPLICAS", str(parallel.dp))
    return Written(text="\n".join(lines) + program, left_out=left_out)


def _truth(on: bool) -> str:
    """Return a truth value in Python's syntax."""
    return "True" if on else "False"


def _python(value: str) -> str:
    """Return a JSON value in Python's syntax."""
    return {"true": "True", "false": "False"}.get(value, value)


def _left_out(job: JobToWrite, setup: TrainingSetup) -> dict[str, str]:
    left_out: dict[str, str] = {}
    if setup.recipe.name != "fsdp16":
        left_out["recipe"] = "the state is kept in FP32 and gathered in BF16 (fsdp16)"
    if job.dtype != "bf16":
        left_out["dtype"] = f"matmuls are in bf16, not in {job.dtype}"
    if setup.recompute not in ("none", "full"):
        left_out["recompute"] = f"layers are recomputed whole or not at all, not {setup.recompute}"
    if not setup.overlap_data_parallel:
        left_out["overlap_data_parallel"] = "FSDP always prefetches"
    if not setup.overlap_weights:
        left_out["overlap_weights"] = "FSDP always prefetches"
    leave_out_rest(setup, left_out, ())
    return left_out
