"""From peak to MFU: conventions, published values, losses of a step, scaling."""

from __future__ import annotations

from figgen import catalog
from figgen.catalog import run as catalog_run
from figgen.charts import Axis, Bars, Column, Curves, Named, Scalar, Series, Table
from figgen.errors import InputError
from figgen.models.step.compute import CONVENTIONS, utilisation
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.units import format_quantity

SHORT = {
    "6nd": "6 per parameter per token",
    "6nd+attention": "with attention",
    "causal": "with half of attention",
    "hfu-full": "every forward twice",
    "hfu-selective": "attention core twice",
    "hfu-selective-korthikanti": "as printed in 2022",
    "megatron": "Megatron's formula",
}
"""Conventions as short labels of bars."""


@figure("mfu-conventions")
def mfu_conventions(*, run: str = "korthikanti22-175b-seqsel") -> Bars:
    """One measured throughput under every convention, with and without recomputation."""
    found = catalog_run(run)
    rate = found.tokens_per_s_per_gpu
    if rate is None:
        raise InputError(f"run {run!r} prints no throughput", key="run")
    shares = {}
    for name in CONVENTIONS:
        try:
            shares[name] = utilisation(
                found.model.shape,
                name,
                tokens_per_s_per_gpu=rate,
                peak_flops_per_s=found.mfu_peak_flops_per_s,
                sequence=found.sequence,
            )
        except InputError:
            continue  # a convention that does not cover the shape
    values = {
        name.replace("+", "_").replace("-", "_"): Named(share) for name, share in shares.items()
    }
    return Bars(
        labels=tuple(SHORT[name] for name in shares),
        segments=segments(
            {
                kind: [
                    share if CONVENTIONS[name].hardware is hardware else 0.0
                    for name, share in shares.items()
                ]
                for kind, hardware in (("MFU", False), ("HFU", True))
            }
        ),
        axis=Axis(label="share of the dense peak", low=0.0, spec=".1%"),
        values={
            **{key.replace("6nd", "params"): value for key, value in values.items()},
            "least": Named(min(shares.values())),
            "most": Named(max(shares.values())),
            "count": Named(len(shares)),
            "rate": Named(rate, "token/s"),
        },
    )


PRINTED = (
    "palm-540b", "mt-nlg-530b-2240", "korthikanti22-530b-seqsel", "korthikanti22-1t-seqsel",
    "llama-1-65b", "bloom-176b", "megascale-175b-12288", "deepseek-v3",
    "mlperf-v5.0-llama-3-405b-h100-512",
)  # fmt: skip


@figure("mfu-printed")
def mfu_printed() -> Table:
    """MFU as printed and as computed from the printed throughput, by count of attention."""
    rows: list[tuple[Scalar, ...]] = []
    for name in PRINTED:
        found = catalog_run(name)
        if found.tokens_per_s_per_gpu is None:
            raise InputError(f"run {name!r} prints no throughput")
        printed = "–" if found.mfu is None else found.mfu.value
        whole, halved = (found.model_flops_utilisation(causal=causal) for causal in (False, True))
        peak = f"{found.mfu_dtype.upper()}, {_flops(found.mfu_peak_flops_per_s)}"
        rows.append((found.title, found.gpus or "–", peak, printed, whole, halved))
    gaps = [
        min(abs(float(whole) - printed), abs(float(halved) - printed))
        for _, _, _, printed, whole, halved in rows
        if isinstance(printed, float)
    ]
    return Table(
        columns=(
            Column(label="run"),
            Column(label="GPUs", spec=","),
            Column(label="compared with"),
            *headings(
                "MFU as printed",
                "computed, attention whole",
                "computed, masked half left out",
                spec=".1%",
            ),
        ),
        rows=tuple(rows),
        values={
            "runs": Named(len(rows)),
            "printed": Named(len(gaps)),
            "worst_gap": Named(max(gaps)),
        },
    )


def _flops(rate: float) -> str:
    return format_quantity(rate, "FLOP/s", "flops")


LOSSES = ("gpt-3-175b", "gpt-175b-selective", "mt-nlg-530b", "bloom-176b", "megascale-175b",
          "llama-3-405b-8k-16384", "llama-3-405b-131k")  # fmt: skip


def shares_of_wall(found: TrainingStep) -> dict[str, float]:
    """Return shares of the step time; useful work at the peak comes first."""
    estimate = found.estimate
    wall, mfu = estimate.step_time_s, estimate.model_flops_utilisation
    return {
        "useful: work at the peak rate (MFU)": mfu,
        "lost: kernels below the peak": estimate.compute_s / wall - mfu,
        "lost: recomputation": estimate.recompute_s / wall,
        "lost: idle stages": estimate.bubble_s / wall,
        "lost: exposed messages": estimate.exposed_s / wall,
    }


@figure("wall-shares")
def wall_shares(*, presets: tuple[str, ...] = LOSSES) -> Bars:
    """The wall time of published configurations as the step model divides it."""
    found = {name: training_step(preset=name) for name in presets}
    shares = {name: shares_of_wall(each) for name, each in found.items()}
    parts = tuple(next(iter(shares.values())))
    roles = ("series-2", "series-1", "series-3", "idle", "exposed")
    values: dict[str, Named] = {"count": Named(len(found))}
    for name, share in shares.items():
        key = identifier(name)
        values |= {
            f"{key}_{short}": Named(share[part])
            for short, part in zip(
                ("mfu", "kernels", "again", "idle", "exposed"), parts, strict=True
            )
        }
    return Bars(
        labels=tuple(each.title for each in found.values()),
        segments=segments({part: [shares[name][part] for name in found] for part in parts}, roles),
        axis=Axis(label="share of the wall time", low=0.0, high=1.0, spec=".0%"),
        values=values,
    )


_MEGATRON, _MLPERF = "megascale-175b-megatron", "mlperf-v5.0-llama-3-405b-h100"
SCALED = {
    "GPT 175B, Megatron-LM (BF16 peak)": tuple(
        f"{_MEGATRON}-{gpus}" for gpus in (256, 512, 768, 1024)
    ),
    "Llama 3.1 405B, MLPerf (FP8 peak)": tuple(f"{_MLPERF}-{gpus}" for gpus in (512, 2432, 8192)),
}


@figure("published-scaling", explorable=True)
def published_scaling() -> Curves:
    """MFU of published series over the GPUs, each relative to the peak that its run uses."""
    series: list[Series] = []
    batches = []
    for label, names in SCALED.items():
        found = [run for run in map(catalog_run, names) if run.tokens_per_s_per_gpu is not None]
        gpus = [run.gpus for run in found if run.gpus]
        shares = [run.model_flops_utilisation() for run in found if run.gpus]
        series.append(line(label, map(float, gpus), shares, len(series)))
        batches.append([run.global_batch or 0 for run in found])
    values: dict[str, Named] = {"series": Named(len(series))}
    for index, each in enumerate(series, 1):
        values[f"kept_{index}"] = Named(each.y[-1] / each.y[0])
        values[f"factor_{index}"] = Named(each.x[-1] / each.x[0])
        values[f"batch_{index}"] = Named(batches[index - 1][-1] / batches[index - 1][0])
    return Curves(
        x=Axis(label="GPUs", scale="log2", spec=","),
        y=Axis(label="MFU, from the printed throughput", low=0.0, high=0.7, spec=".0%"),
        series=tuple(series),
        values=values,
    )


PEAKS = {"bf16": "16-bit peak", "fp16": "16-bit peak", "fp8": "FP8 peak", "fp4": "FP4 peak"}
"""The peak to which an MFU is relative, by the run's `mfu_dtype`."""

PRINTED_MFU, DERIVED = "printed", "from tokens/s"


@figure("mfu-by-gpus", explorable=True)
def mfu_by_gpus() -> Curves:
    """MFU of every published run over its accelerators, by the peak that it uses.

    Values are printed, or derived from the printed throughput and the model's shape; nothing is
    assumed.
    """
    runs = catalog.RUNS
    points: dict[str, list[tuple[float, float]]] = {}
    shares: dict[str, float] = {}
    for name, found in sorted(runs.items(), key=lambda item: item[1].mfu_dtype):
        if not found.gpus or (found.mfu is None and found.tokens_per_s_per_gpu is None):
            continue
        share = found.mfu.value if found.mfu else found.model_flops_utilisation()
        known = PRINTED_MFU if found.mfu else DERIVED
        label = f"of the {PEAKS[found.mfu_dtype]}, {known}"
        points.setdefault(label, []).append((float(found.gpus), share))
        shares[name] = share
    large = [share for name, share in shares.items() if (runs[name].gpus or 0) >= 1000]
    widest = max(
        runs[name].mfu_peak_flops_per_s / runs[name].accelerator.peak_flops_per_s("bf16")
        for name in shares
        if PEAKS[runs[name].mfu_dtype] != PEAKS["bf16"]
    )
    lengths = {label: len(found) for label, found in points.items()}
    return Curves(
        x=Axis(label="accelerators", scale="log2", spec=","),
        y=Axis(label="MFU, share of the dense peak named", low=0.0, high=0.8, spec=".0%"),
        series=tuple(
            line(label, [x for x, _ in found], [y for _, y in found], index, "points")
            for index, (label, found) in enumerate(sorted(points.items()))
        ),
        values={
            "count": Named(len(shares)),
            "derived": Named(sum(n for label, n in lengths.items() if label.endswith(DERIVED))),
            "narrow": Named(sum(n for label, n in lengths.items() if "16-bit" not in label)),
            "widest": Named(widest),
            "least": Named(min(shares.values())),
            "most": Named(max(shares.values())),
            "lowest": Named(runs[min(shares, key=shares.__getitem__)].title),
            "large": Named(len(large)),
            "large_least": Named(min(large)),
            "large_most": Named(max(large)),
        },
    )
