"""Framework options that keep part of the state or of the activations on the host.

Sources: those of the writers; NVIDIA/Megatron-LM at d98e8a64, megatron/core/transformer/
transformer_config.py (what cpu_offloading requires), deepspeed/runtime/zero/offload_config.py.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.megatron_options import Option

KNOWN = ("offload", "away", "behind")
"""The options of a job that these framework options express."""


def megatron_offloading(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return Megatron-LM's options for the optimizer and for layers of activations on the host."""
    found: list[Option] = []
    share, layers = setup.offloaded_optimizer, setup.shape.layers
    if share and setup.zero_stage == 0:
        left_out["offloaded_optimizer"] = "only the distributed optimizer is offloaded"
    elif share:
        found.append(("optimizer_cpu_offload", ""))
        found.append(("optimizer_offload_fraction", f"{share:g}"))
        if setup.recipe.name != "mcore14" or setup.zero_stage > 1:  # else the recipe has it
            found.append(("use_precision_aware_optimizer", ""))
        if setup.offload_overlap:
            found.append(("overlap_cpu_optimizer_d2h_h2d", ""))
    away = int(setup.offloaded_activations * layers)
    plain = setup.parallel.pp == 1 and setup.recompute == "none"
    if away and plain and away == setup.offloaded_activations * layers and away < layers:
        found.append(("cpu_offloading_num_layers", str(away)))
    elif setup.offloaded_activations:
        left_out["offloaded_activations"] = (
            "cpu_offloading_num_layers requires whole layers, and no pipeline or recomputation"
        )
    return found


def deepspeed_offloading(setup: TrainingSetup, left_out: dict[str, str]) -> str:
    """Return the further fields of DeepSpeed's zero_optimization, with a leading comma."""
    if not setup.offloaded_optimizer:
        return ""
    if setup.zero_stage == 0 or (setup.offloaded_optimizer < 1 and setup.zero_stage < 3):
        left_out["offloaded_optimizer"] = "ZeRO 1 to 3 offload all of it, only ZeRO 3 a part"
        return ""
    ratio = f', "ratio": {setup.offloaded_optimizer:g}' if setup.offloaded_optimizer < 1 else ""
    return f', "offload_optimizer": {{"device": "cpu", "pin_memory": true{ratio}}}'
