"""calculon: kernels of a block by their FLOPs and bytes, messages by tiers of network.

https://github.com/calculon-ai/calculon. It has no constant: its system files give the attained rate
of matmuls by size. They are used with the datasheet's numbers of each run's chip and links; the
constant multiplies the rate of matmuls.
"""

from __future__ import annotations

import copy
import json
import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

from calculon import System
from calculon.llm import Llm

from figgen.models.shape.model_shape import FFN_MATRICES
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.residual_classes import generation_of
from tests.benchmarks.rivals.refusal import Refusal, refuse

FOLDER = Path(os.environ.get("CALCULON", ".cache/rivals/calculon"))
DTYPES = {"bf16": "float16", "fp16": "float16", "fp8": "float8"}
RECOMPUTED = {"full": "full", "selective": "attn_only"}
UNLIMITED_GIB = 1e6
"""Every run did fit, so none is refused for lack of memory."""

IN_NODE, BETWEEN = 0, 1


def seconds(run: DescribedRun, constant: float) -> float:
    """Return the seconds of a step with matmuls `constant` times as fast as in its system files."""
    shape = run.shape
    refuse(shape.experts is not None, "experts")
    refuse(run.cp > 1, "context parallelism")
    refuse(run.zero_stage == 3, "ZeRO-3 and FSDP")
    refuse(run.dtype not in DTYPES, f"products in {run.dtype.upper()}")
    refuse(run.tp > run.gpus_per_node, "TP over nodes")
    refuse(bool(run.layers_per_stage), "uneven stages")
    uneven = run.global_batch % (run.dp * run.microbatch)
    refuse(bool(uneven), "a last microbatch that is not full")
    model = Llm(
        Llm.Application(
            {
                "hidden": shape.hidden,
                "seq_size": run.sequence,
                "attn_heads": shape.heads,
                "attn_size": shape.head_dim,
                "num_blocks": shape.layers,
                # A gate is a third matrix: the work of a two-matrix MLP that is 1.5 times as wide.
                "feedforward": round(shape.ffn_hidden * FFN_MATRICES[shape.ffn] / 2),
            }
        ),
        logging.getLogger("calculon"),
    )
    system = System(_system(run, constant))
    try:
        model.compile(system, Llm.Execution.from_json(_execution(run)))
        model.run(system)
    except (Llm.Error, AssertionError) as error:
        words = str(error)
        reason = "chunks that do not divide a stage" if "nterleaving" in words else "its checks"
        raise Refusal(reason) from None
    return float(model.get_total_time())


def _execution(run: DescribedRun) -> dict[str, Any]:
    tensor = run.tp > 1
    near = run.gpus <= run.gpus_per_node
    return {
        "num_procs": run.gpus,
        "tensor_par": run.tp,
        "pipeline_par": run.pp,
        "data_par": run.dp,
        "tensor_par_net": IN_NODE,
        "pipeline_par_net": IN_NODE if near else BETWEEN,
        "data_par_net": IN_NODE if near else BETWEEN,
        "batch_size": run.global_batch,
        "microbatch_size": run.microbatch,
        "datatype": DTYPES[run.dtype],
        "fused_activation": True,
        "attention_type": "multihead",
        "activation_recompute": RECOMPUTED.get(run.recompute, "none"),
        "pipeline_interleaving": run.virtual_stages if run.pp > 1 else 1,
        "optimizer_sharding": run.zero_stage >= 1 and run.dp > 1,
        "tensor_par_comm_type": "rs_ag" if tensor else "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": run.dp > 1,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }


@cache
def _template(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "systems" / name).read_text())
    return found


def _system(run: DescribedRun, constant: float) -> dict[str, Any]:
    chip = run.accelerator
    ampere = generation_of(chip) in ("ampere", "volta")
    found = copy.deepcopy(_template("a100_80g.json" if ampere else "h100_80g_nvl8.json"))
    name = DTYPES[run.dtype]
    found["matrix"][name]["tflops"] = chip.peak_flops_per_s(run.dtype) / 1e12 * constant
    found["mem1"] |= {"GiB": UNLIMITED_GIB, "GBps": chip.hbm_bandwidth_bytes_per_s / 1e9}
    found["mem2"] |= {"GiB": UNLIMITED_GIB}
    near, far = found["networks"]
    near |= {"bandwidth": chip.scale_up_bandwidth_bytes_per_s / 1e9, "size": run.gpus_per_node}
    sharing = run.gpus_per_node if run.network.per == "node" else 1
    far |= {"bandwidth": run.network.bandwidth_bytes_per_s / sharing / 1e9}
    return found
