"""The purpose of a tensor in a snapshot of PyTorch's allocator, told by its allocation's frames.

The innermost frame that names a purpose decides. PyTorch's default recording (`stacks="all"`) adds
C++ frames, of which every operation of the forward pass has one of `torch::autograd::VariableType`:
only the autograd engine's own frames mean the backward pass.
Source: pytorch/pytorch@0044eb67, torch/csrc/autograd/engine.cpp and
torch/csrc/autograd/functions/accumulate_grad.h; torch/cuda/memory.py, `_record_memory_history`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from figgen.errors import InputError

NATIVE, PATH, NAME = "native", "path", "name"
"""What a rule looks at: a C++ function, a Python file inside its package, a Python function."""

RULES = (
    ("loss", NATIVE, r"nll_loss|log_?softmax|cross_?entropy"),
    ("gradients", NATIVE,
     r"autograd::engine::(evaluate_function|thread_main)|accumulategrad|c10d::reducer"),
    ("optimizer", NATIVE, r"_fused_(adam|sgd|adagrad)|_foreach_(addcdiv|lerp)"),
    ("communication", NATIVE, r"c10d::|nccl|nvshmem|symmetric_?memory"),
    ("optimizer", PATH,
     r"(^|[/_])(optim|optimizers?|adam[a-z]*|adafactor|muon|lion|lamb|sgd|shampoo)([/_.0-9]|$)"),
    ("optimizer", NAME, r"^_init_group$|^_(single|multi)_tensor_|^_fused_adam|optimizer_state"),
    ("weights", NAME, r"^_init_sharded|^_apply$|^to_empty$|reset_parameters|load_state_dict"),
    ("gradients", PATH, r"grad_accum|grad_buffer"),
    ("gradients", NAME, r"main_grad|^_?(engine_)?run_backward$"),
    ("activations", PATH, r"^torch/distributed/(pipelining|algorithms/_checkpoint)/"),
    ("communication", PATH,
     r"^torch/distributed/(?!tensor/)|^torch/distributed/tensor/.*(collective|redistribute)"),
    ("communication", PATH, r"(^|[/_])(nccl|deep_ep|fsdp)([/_.0-9]|$)"),
    ("communication", NAME, r"all_gather|all_reduce|reduce_scatter|all_to_all"),
    ("loss", PATH, r"(^|[/_])loss(es)?([/_.]|$)|cross_?entropy"),
    ("loss", NAME, r"(^|_)loss|loss(_|$)|log_softmax|cross_?entropy"),
    ("weights", NAME, r"^__init__$|materialize|from_pretrained|init_weights|_load_"),
    ("activations", NAME, r"forward|^_call_impl$"),
    ("gradients", NAME, r"^backward$|_backward$"),
    ("activations", PATH, r"^torch/nn/(functional|modules/)|(^|/)modeling_|/models?/"),
    ("activations", PATH, r"^(flash_attn|transformer_engine|xformers|liger_kernel)/"),
)  # fmt: skip
"""Kind, what is looked at, and a pattern in lower case; the first rule that matches decides."""

SEEDS = ("torch/_tensor.py", "torch/autograd/__init__.py")
"""Files that start the backward pass: what they allocate is the loss's own gradient, one number."""

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
PACKAGES = (
    "torch", "transformers", "megatron", "deepspeed", "apex", "transformer_engine", "accelerate",
    "torchtitan", "nanotron", "lightning", "flash_attn", "xformers", "bitsandbytes", "torchao",
    "liger_kernel", "peft", "trl",
)  # fmt: skip
"""Packages that are also used from a checkout, outside of a folder of installed packages."""

OTHER = "other"


def kind_of(frames: Sequence[Mapping[str, Any]], known: dict[str, str] | None = None) -> str:
    """Return a tensor's purpose by the innermost frame that names one; `known` caches frames."""
    seen: dict[str, str] = {} if known is None else known
    for frame in frames:
        if not isinstance(frame, dict):
            raise InputError("a frame", expected="a dict", got=frame)
        file, name = str(frame.get("filename") or ""), str(frame.get("name") or "")
        key = f"{file}:{name}"
        if key not in seen:
            seen[key] = _kind_of_frame(file, name)
        if seen[key]:
            return seen[key]
    return OTHER


def _kind_of_frame(file: str, name: str) -> str:
    """Return the kind that one frame names, or an empty text if it names none."""
    path = path_in_package(file).lower()
    texts = {PATH: path, NAME: name.lower()}
    if not file.endswith(".py"):
        texts = {NATIVE: name.lower()}
        if "::" not in name:
            texts[NAME] = name.lower()
    if path in SEEDS:
        return ""
    for kind, looked_at, pattern in RULES:
        if looked_at in texts and re.search(pattern, texts[looked_at]):
            return kind
    return ""


def path_in_package(file: str) -> str:
    """Return a file's path from its package on, or its bare name outside of every package.

    The rest of the path, such as a reader's home folder, says nothing about a tensor.
    """
    parts = file.replace("\\", "/").split("/")
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in PACKAGE_FOLDERS:
            return "/".join(parts[at + 1 :])
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in PACKAGES:
            return "/".join(parts[at:])
    return parts[-1]
