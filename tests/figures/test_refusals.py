"""Arguments with which a figure cannot be drawn are refused, with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from figgen.errors import InputError
from figgen.registry import build

THREE = ["all-reduce-32-ranks", "b200-all-reduce-1-node", "b200-all-reduce-4-nodes"]
REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("all-reduce-any-ranks", {"ranks": [1]}, "ranks"),
    ("all-reduce-factor", {"most_ranks": 1}, "most_ranks"),
    ("all-reduce-measured-by-ranks", {"measurements": ["h200-all-reduce-by-gpus"], "names": []},
     "names"),
    ("all-reduce-measured-by-size", {"measurement": "h200-all-reduce-by-gpus"}, "sizes"),
    ("all-reduce-nic-bytes", {"nodes": 1}, "nodes"),
    ("all-reduce-times", {"nodes": 3}, "power of two"),
    ("all-reduce-times", {"preset": "map-8"}, "hardware preset"),
    ("alpha-beta-fit", {"measurement": "h200-all-gather"}, "all-reduce"),
    ("alpha-beta-fits", {"measurements": THREE, "names": ["one"]}, "names"),
    ("alpha-beta-residuals", {"measurements": THREE, "names": ["one"]}, "names"),
    ("block-error", {"every": 1}, "every"),
    ("bus-bandwidth-table", {"measurements": ["h200-all-gather"], "names": ["a"]}, "all-reduce"),
    ("ccr-changes", {"preset": "a100-hdr"}, "fp8"),
    ("ccr-of-models", {"models": ["mixtral-8x7b"]}, "a dense model"),
    ("collective-numbers", {"vectors": ((1, 2),)}, "vectors"),
    ("collective-numbers", {"vectors": ((1, 2), (3,))}, "vectors"),
    ("collective-numbers", {"vectors": ((1, 2), (3, 4), (5, 6))}, "vectors"),
    ("collective-steps", {"collective": "all-reduce", "algorithm": "rings", "ranks": 4}, "ring"),
    ("communication-roofline", {"preset": "map-8"}, "a hardware preset"),
    ("communication-roofline", {"preset": "a100-hdr", "dtype": "fp8"}, "fp8"),
    ("double-binary-tree", {"ranks": 64}, "ranks"),
    ("exchange-distances", {"ranks": 6}, "power of two"),
    ("fsdp-layer-flow", {"ranks": 12}, "ranks"),
    ("fsdp-layer-flow", {"model": "mixtral-8x7b"}, "model"),
    ("link-crossovers", {"ranks": 1}, "ranks"),
    ("link-levels", {"oversubscription": 0.5}, "at least 1"),
    ("measured-strong-scaling", {"gpus": [384], "measured_flops_per_s": ["1 TFLOP/s", "2 TFLOP/s"],
     "global_batch": 1536, "sequence_length": 2048}, "equal lengths"),
    ("message-time", {"link": "pcie5-x16"}, "scale-up or scale-out"),
    ("nccl-choices", {"preset": "map-8"}, "hardware preset"),
    ("precision-layer-time", {"model": "mixtral-8x7b"}, "model"),
    ("precision-layer-time", {"utilization": 0.0}, "utilization"),
    ("precision-traffic", {"model": "deepseek-v3"}, "model"),
    ("rank-grid", {}, "one of preset, run or sizes"),
    ("rank-grid", {"preset": "map-8", "run": "deepseek-v3"}, "got ['preset', 'run']"),
    ("rank-grid", {"preset": "map-8", "first": "dp-cp"}, "first: expected one of tp, cp"),
    ("rank-grid", {"preset": "h100-ndr"}, "nodes: expected a value"),
    ("rank-grid", {"preset": "map-9"}, "did you mean"),
    ("rank-grid", {"run": "palm-540b"}, "a published layout"),
    ("rank-grid", {"sizes": "nodes=2 gpus_per_node=8 tq=8"}, "unknown word of sizes"),
    ("rank-grid", {"sizes": "nodes=2 gpus_per_node=8 tp=-8"}, "1 to 1,048,576, got -8"),
    ("rank-grid", {"sizes": "nodes=2 gpus_per_node=8 tp=3"}, "a divisor of 16"),
    ("rank-grid", {"sizes": "nodes=256 gpus_per_node=8 tp=1024 pp=2"}, "512 GPUs, got 2048"),
    ("rank-groups", {"preset": "map-8", "communicators": ["tq"]}, "axes of a communicator"),
    ("rank-strides", {"preset": "map-8", "rank": 8}, "expected 0 … 7, got 8"),
    ("ring-bus-bandwidth", {"low_bytes": "1 GB", "high_bytes": "1 MB"}, "low < high"),
    ("ring-crossovers", {"links": ["pcie5-x16"]}, "scale-up or scale-out"),
    ("ring-diagram", {"ranks": 5}, "even"),
    ("root-against-ring", {"ranks": 1}, "ranks"),
    ("strong-scaling", {"most_gpus": 8}, "at least two"),
    ("switch-adds", {"ranks": 9}, "ranks"),
    ("two-grids", {"sizes": "nodes=1 gpus_per_node=8 tp=2", "order": "llama3"}, "no experts"),
    ("zero-choice", {"usable_fraction": 0.0}, "usable_fraction"),
    ("zero3-tokens", {"utilization": 2.0}, "utilization"),
)  # fmt: skip


@pytest.mark.parametrize(("figure", "arguments", "message"), REFUSED)
def test_a_figure_that_cannot_be_drawn_is_refused_with_the_reason(
    figure: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        build(figure, arguments)
    assert message in str(refused.value)
