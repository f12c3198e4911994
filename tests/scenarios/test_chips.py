"""What chips keep of their peaks, compared with runs that no fit has used."""

from __future__ import annotations

from math import prod

import pytest

from figgen import catalog
from figgen.catalog.rates import constants
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rates import attained
from figgen.scenarios.runs.record import described_run

MAXTEXT = {
    "maxtext-llama-2-70b-v5p": (4, "minimal"),
    "maxtext-llama-2-70b-v6e": (4, "full"),
    "maxtext-llama-3-8b-v6e": (4, "save_dot_except_mlp"),
    "maxtext-llama-3-70b-v6e": (5, "save_qkv_proj"),
}
"""Sequences per chip and what is recomputed: AI-Hypercomputer/maxtext@e591f30c,
benchmarks/maxtext_v5p_model_configs.py and maxtext_trillium_model_configs.py.

The projections that two of them send to the host are kept as well.
"""


@pytest.mark.parametrize(("name", "config"), MAXTEXT.items())
def test_maxtext_on_tpus_reaches_what_its_page_prints(name: str, config: tuple[int, str]) -> None:
    """It uses matmul rates of MaxText on GPUs, and the share of a measured rate of
    NVIDIA's chips."""
    run, (batch, recompute) = catalog.RUNS[name], config
    step = predicted_step(
        described_run(
            {
                "framework": "MaxText",
                "hardware": run.accelerator.name,
                "model": run.model.name,
                "num_accelerators": run.gpus,
                "tp": 1,
                "pp": 1,
                "micro_batch": batch,
                "global_batch_sequences": batch * run.gpus,
                "seq_length": run.sequence,
                "precision": run.dtype,
                "recompute": recompute,
            }
        )
    )
    assert run.tokens_per_s is not None
    assert step.tokens_per_s_per_gpu == pytest.approx(run.tokens_per_s.value, rel=0.06)


def test_a_step_sustains_the_same_share_of_a_rate_that_was_measured_of_any_chip() -> None:
    shares = {
        key.partition(".")[2]: constant.value
        for key, constant in constants().items()
        if key.startswith("matmul_share.")
    }
    usual = prod(shares[one] for one in ("ampere", "hopper", "blackwell")) ** (1 / 3)
    assert shares["measured"] == pytest.approx(usual, rel=0.02)
    assert shares["tpu"] == shares["measured"]


@pytest.mark.parametrize(("chip", "median"), [("l40s", 206e12), ("rtx-pro-6000", 391e12)])
def test_cards_sustain_the_median_of_their_tables_as_others_do(chip: str, median: float) -> None:
    """ai-dynamo/aiconfigurator@095f58a5, gemm_perf, BF16 from 2,048 on: medians of 260, 726 and
    1,462 TFLOP/s on an A100, an H100 and a B200."""
    known = {"a100-sxm-80gb": 260e12, "h100-sxm-80gb": 726e12, "b200-sxm-hgx": 1462e12}

    def over(name: str, rate: float) -> float:
        run = described_run({
            "framework": "megatron-bridge", "hardware": name, "model": "llama-3-8b",
            "num_accelerators": 8, "tp": 1, "pp": 1, "global_batch_sequences": 8,
            "seq_length": 4096, "precision": "bf16", "release": "26.04",
        })  # fmt: skip
        return float(attained(run).matmul_flops_per_s) / rate

    usual = [over(name, rate) for name, rate in known.items()]
    assert min(usual) - 0.01 < over(chip, median) < max(usual)
    assert over(chip, median) == pytest.approx(prod(usual) ** (1 / 3), rel=0.02)
