"""The table of all software for which jobs are written."""

from __future__ import annotations

from collections.abc import Callable

from figgen.errors import unknown
from figgen.scenarios.writing.fsdp2 import fsdp2
from figgen.scenarios.writing.megatron_bridge import megatron_bridge
from figgen.scenarios.writing.megatron_lm import megatron_lm
from figgen.scenarios.writing.torchtitan import torchtitan
from figgen.scenarios.writing.trainers import accelerate, deepspeed
from figgen.scenarios.writing.written import JobToWrite, Written

Writer = Callable[[JobToWrite], Written]

WRITERS: dict[str, Writer] = {
    "megatron-lm": megatron_lm,
    "megatron-bridge": megatron_bridge,
    "torchtitan": torchtitan,
    "deepspeed": deepspeed,
    "accelerate": accelerate,
    "fsdp2": fsdp2,
}
"""Writers of whole jobs by software."""

LABELS = {
    "megatron-lm": "Megatron-LM", "megatron-bridge": "Megatron-Bridge",
    "torchtitan": "torchtitan", "deepspeed": "DeepSpeed + transformers",
    "accelerate": "accelerate + transformers", "fsdp2": "PyTorch FSDP2",
}  # fmt: skip
"""The names of the frameworks."""

FILES = {
    "megatron-lm": "train.sh", "megatron-bridge": "train.sh", "torchtitan": "train.sh",
    "deepspeed": "train.sh", "accelerate": "train.sh", "fsdp2": "train.py",
}  # fmt: skip
"""The names of their files."""


def write_job(software: str, job: JobToWrite) -> Written:
    """Write the file that starts a job. Raises InputError for unknown software."""
    if software not in WRITERS:
        raise unknown("software", software, WRITERS)
    return WRITERS[software](job)
