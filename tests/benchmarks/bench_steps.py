"""How fast training steps are predicted, compared with a plain prediction of the same steps."""

from __future__ import annotations

import time

from tests.benchmarks.bench_models import measured
from tests.models.plain_step import configs, plain_step, predicted


def test_100_000_steps() -> None:
    every = list(configs())
    assert len(set(every)) == 100_000
    sample = every[::100]
    started = time.perf_counter()
    for config in every:
        predicted(config)
    seconds = time.perf_counter() - started
    _, ours_mib = measured(lambda: [predicted(config) for config in sample], rounds=1)
    plain_s, plain_mib = measured(lambda: [plain_step(config) for config in sample], rounds=1)
    ours, plain = seconds / len(every), plain_s / len(sample)
    print(
        f"\n100,000 training steps: {seconds:.1f} s, {ours * 1e6:.0f} µs each, "
        f"{ours_mib:.1f} MiB; plain (time and bytes only, 1,000 of them) {plain * 1e6:.0f} µs "
        f"each, {plain_mib:.1f} MiB; ours takes {ours / plain:.2f} of plain"
    )
