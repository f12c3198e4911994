"""Which measured runs calibrate the model of time, and which only test it.

The rule was fixed before anything was fitted. Runs that share layout, model, hardware, precision
and framework are on one side, whatever their release (`config_key`): half of the keys, by the first
byte of their SHA-256. The runs of the catalog, which this guide has always shown, calibrate, and so
does every measured run of a layout that one of them has.

Publishers who were collected later are on one side as a whole (`PUBLISHER_SIDES`), by the same byte
of their names, so that nobody's habits are both fitted and tested.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from figgen.errors import unknown
from figgen.scenarios.runs.described import DescribedRun

CALIBRATION, TEST = "calibration", "test"

PUBLISHER_SIDES: dict[str, str] = {
    "alfredyu24-mi350x": CALIBRATION,
    "amd-te-threads": TEST,
    "aws-neuron": TEST,
    "bigscience-v100-jeanzay": CALIBRATION,
    "dao-flash-attention": CALIBRATION,
    "fla-org-issue32": TEST,
    "google-gpu-recipes": CALIBRATION,
    "huggingface-smollm3": TEST,
    "internlm-internevo": CALIBRATION,
    "internlm-xtuner": CALIBRATION,
    "internlm-xtuner-megatron-h800": TEST,
    "jzhang38-tinyllama": CALIBRATION,
    "kaist-vtrain": CALIBRATION,
    "karpathy-nanochat": CALIBRATION,
    "karpathy-nanogpt": CALIBRATION,
    "lightning-litgpt": TEST,
    "modelscope-ms-swift": TEST,
    "nvidia-jax-toolbox": TEST,
    "nvidia-megatron-bridge-cards": TEST,
    "nvidia-transformer-engine-tutorial": CALIBRATION,
    "oneflow-libai": CALIBRATION,
    "primeintellect-prime-rl": TEST,
    "pytorch-torchtitan-threads": CALIBRATION,
    "pytorch-torchtune": TEST,
    "pytorch-xla-torchprime": CALIBRATION,
}
"""The side of every publisher of `runs-publishers.json`, which is `side_of_key` of its name."""

Layout = tuple[object, ...]


def side_of_key(config_key: str) -> str:
    """Return the side of a group of runs, by the hash of its key."""
    return CALIBRATION if sha256(config_key.encode()).digest()[0] < 128 else TEST


def publisher_side(publisher: str) -> str:
    """Return the side of a publisher. Raises InputError if none was assigned."""
    if publisher not in PUBLISHER_SIDES:
        raise unknown("publisher", publisher, PUBLISHER_SIDES)
    return PUBLISHER_SIDES[publisher]


def layout_key(run: DescribedRun) -> Layout:
    """Return what makes two runs the same experiment: sizes, chips, layout and batch."""
    shape = run.shape
    return (
        shape.layers, shape.hidden, shape.ffn_hidden, shape.heads, run.accelerator.name, run.gpus,
        run.tp, run.cp, run.pp, run.ep, run.microbatch, run.global_batch, run.sequence, run.dtype,
    )  # fmt: skip


def sides(measured: Iterable[DescribedRun], shown: Iterable[DescribedRun]) -> dict[str, str]:
    """Return the side of every run by name; `shown` are the runs of the catalog."""
    known = list(shown)
    layouts = {layout_key(run) for run in known}
    found = {
        run.name: CALIBRATION if layout_key(run) in layouts else side_of_key(run.config_key)
        for run in measured
    }
    return found | {run.name: CALIBRATION for run in known}
