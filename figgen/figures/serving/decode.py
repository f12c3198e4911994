"""Decode and prefill: cache per token, bytes read per step, price of a token."""

from __future__ import annotations

from typing import NamedTuple

from figgen.catalog import accelerator, model
from figgen.catalog.models import Model
from figgen.charts import Axis, Bars, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import check_between
from figgen.figures.parameters import AcceleratorName, ModelName
from figgen.formulas.serving import (
    cache_bytes_per_token,
    critical_decode_sequences,
    decode_reading_time,
    energy_per_token,
    prefill_time,
    price_per_token,
    sequences_that_fit,
)
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.evidence.decoding import token_cache_bytes

CACHED = (
    "gpt-3-175b", "llama-1-65b", "llama-3-8b", "llama-3-70b", "llama-3-405b", "mixtral-8x7b",
    "deepseek-v3",
)  # fmt: skip
USABLE = 0.9
"""Share of the memory that weights and caches may fill: an assumption."""


def full_cache_bytes(found: Model) -> float:
    """Return the 16-bit cache of one token if every head had its own keys and values."""
    return float(cache_bytes_per_token(found.layers, found.shape.attention_width, 2))


@figure("cache-by-model", recomputed=True)
def cache_by_model(*, models: tuple[ModelName, ...] = CACHED) -> Bars:
    """16-bit keys and values per token, compared with full heads."""
    found = {name: model(name) for name in models}
    kept = {name: token_cache_bytes(each) for name, each in found.items()}
    full = {name: full_cache_bytes(each) for name, each in found.items()}
    return Bars(
        labels=tuple(each.title for each in found.values()),
        segments=segments({"kept": kept.values(), "with full heads": full.values()}),
        axis=Axis(label="keys and values of one token", unit="B", low=0.0, spec="bytes"),
        stacked=False,
        values={
            f"{identifier(name)}_{key}": Named(size, "B")
            for key, sizes in (("token", kept), ("full", full))
            for name, size in sizes.items()
        },
    )


@figure("cache-per-token")
def cache_per_token(*, models: tuple[str, ...] = CACHED, context: int = 32768) -> Table:
    """Keys and values per token and per sequence, and with full heads."""
    check_between("context", context, 1, 10**9)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"context": Named(context)}
    for name in models:
        found = model(name)
        size = token_cache_bytes(found)
        full = full_cache_bytes(found)
        if found.shape.latent:
            kind = f"latent, {found.shape.latent.kv_rank} wide"
        else:
            kind = f"{found.kv_heads} of {found.heads} heads"
        rows.append((found.title, kind, size, size * context, full / size))
        values |= {
            f"{identifier(name)}_token": Named(size, "B"),
            f"{identifier(name)}_sequence": Named(size * context, "B"),
            f"{identifier(name)}_saved": Named(full / size),
        }
    columns = (
        *headings("model", "keys and values"),
        *headings("per token", f"{context:,} tokens", unit="B", spec="bytes"),
        Column(label="full heads, times as much", spec=".1f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


class Served(NamedTuple):
    """A model on GPUs that hold one copy of its weights together, with TP over all of them.

    `read_bytes` of its weights are read per token; `written` and `read` are the parameters that a
    generated token and a prompt token are multiplied with.
    """

    held_bytes: float
    read_bytes: float
    cache_bytes: float
    written: float
    read: float
    flops_per_s: float
    bandwidth: float
    memory: float
    gpus: int

    @property
    def most(self) -> int:
        """Number of sequences that fit."""
        return int(sequences_that_fit(self.memory, self.held_bytes, self.cache_bytes))

    def step_s(self, sequences: int) -> float:
        """Least time of one token for every sequence, s."""
        read = decode_reading_time(self.read_bytes, self.cache_bytes, sequences, self.bandwidth)
        return max(float(read), float(prefill_time(self.written, sequences, self.flops_per_s)))


def served(name: str, chip: str, gpus: int, context: int) -> Served:
    """Return the model in 16 bits on `gpus` accelerators with sequences of `context` tokens."""
    check_between("gpus", gpus, 1, 1024)
    check_between("context", context, 1, 10**8)
    found, gpu = model(name), accelerator(chip)
    return Served(
        2 * found.parameters,
        2 * found.read_parameters,
        context * token_cache_bytes(found),
        found.decoding_parameters,
        found.prefill_parameters,
        gpus * gpu.peak_flops_per_s(),
        gpus * gpu.hbm_bandwidth_bytes_per_s,
        USABLE * gpus * gpu.capacity_bytes,
        gpus,
    )


def batches(job: Served) -> list[int]:
    """Return powers of two of sequences that fit, and the most. Raises InputError if none fits."""
    check_between("sequences that fit", job.most, 1, 10**7)
    return sorted({2**k for k in range(job.most.bit_length())} | {job.most})


@figure("decode-by-batch", explorable=True, recomputed=True)
def decode_by_batch(
    *,
    model_name: ModelName = "llama-3-70b",
    chip: AcceleratorName = "h100-sxm-80gb",
    gpus: int = 8,
    contexts: tuple[int, ...] = (1024, 8192, 32768),
) -> Curves:
    """Tokens per second per GPU over the sequences decoded together, up to full memory."""
    lines, marks = [], []
    values: dict[str, Named] = {"gpus": Named(gpus)}
    for index, context in enumerate(contexts):
        job = served(model_name, chip, gpus, context)
        counts = batches(job)
        rates = [n / job.step_s(n) / gpus for n in counts]
        lines.append(line(f"{context:,} tokens", map(float, counts), rates, index))
        marks.append(
            Mark(x=float(job.most), y=rates[-1], label=f"{job.most:,}", role=f"series-{index + 1}")
        )
        values |= {
            f"most_{context}": Named(job.most),
            f"rate_{context}": Named(rates[-1]),
            f"step_{context}": Named(job.step_s(job.most), "s"),
        }
    job = served(model_name, chip, gpus, contexts[0])
    gpu = accelerator(chip)
    values |= {
        "alone": Named(1 / job.step_s(1) / gpus),
        "alone_step": Named(job.step_s(1), "s"),
        "critical": Named(
            float(
                critical_decode_sequences(gpu.peak_flops_per_s(), gpu.hbm_bandwidth_bytes_per_s, 2)
            )
        ),
    }
    return Curves(
        x=Axis(label="sequences decoded together", scale="log2", spec=",.0f"),
        y=Axis(label="tokens per second per GPU, at most", scale="log10", spec=",.0f"),
        series=tuple(lines),
        marks=tuple(marks),
        values=values,
    )


@figure("price-by-batch", recomputed=True)
def price_by_batch(
    *,
    model_name: ModelName = "llama-3-70b",
    chip: AcceleratorName = "h100-sxm-80gb",
    gpus: int = 8,
    contexts: tuple[int, ...] = (1024, 8192, 32768),
    price_per_gpu_hour: float = 2.0,
) -> Curves:
    """Least price of a generated token, over the sequences that share a reading of weights.

    Every curve ends where the memory is full. A rule marks the price of a prompt token.
    """
    check_between("price_per_gpu_hour", price_per_gpu_hour, 1e-3, 1e4)

    def million(tokens_per_gpu_s: float) -> float:
        return 1e6 * float(price_per_token(price_per_gpu_hour, tokens_per_gpu_s))

    lines, marks = [], []
    values: dict[str, Named] = {"gpus": Named(gpus), "price": Named(price_per_gpu_hour)}
    for index, context in enumerate(contexts):
        job = served(model_name, chip, gpus, context)
        counts = batches(job)
        prices = [million(n / job.step_s(n) / gpus) for n in counts]
        lines.append(line(f"{context:,} tokens", map(float, counts), prices, index))
        marks.append(
            Mark(x=float(job.most), y=prices[-1], label=f"{job.most:,}", role=f"series-{index + 1}")
        )
        values |= {
            f"most_{context}": Named(job.most),
            f"one_{context}": Named(prices[0]),
            f"full_{context}": Named(prices[-1]),
        }
    job = served(model_name, chip, gpus, contexts[0])
    read = million(1 / float(prefill_time(job.read, 1, job.flops_per_s)) / gpus)
    return Curves(
        x=Axis(label="sequences decoded together", scale="log2", spec=",.0f"),
        y=Axis(label="USD per million tokens, at least", scale="log10", spec="g"),
        series=tuple(lines),
        marks=tuple(marks),
        rules=(Rule(axis="y", at=read, label="a token read"),),
        values=values | {"read": Named(read)},
    )


@figure("price-of-tokens")
def price_of_tokens(
    *,
    model_name: str = "llama-3-70b",
    chip: str = "h100-sxm-80gb",
    gpus: int = 8,
    context: int = 8192,
    price_per_gpu_hour: float = 2.0,
    power_w: float = 1000.0,
    power_overhead: float = 1.25,
) -> Table:
    """Least price and energy of a million prompt and generated tokens, at a given GPU price."""
    check_between("price_per_gpu_hour", price_per_gpu_hour, 1e-3, 1e4)
    job = served(model_name, chip, gpus, context)
    check_between("sequences that fit", job.most, 1, 10**7)
    read_s = float(prefill_time(job.read, context, job.flops_per_s))
    cases = [("a prompt, read", context / read_s, read_s)]
    for count in (1, 8, job.most):
        step_s = job.step_s(count)
        cases.append((f"written, {count} at once", count / step_s, step_s))
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"most": Named(job.most), "price": Named(price_per_gpu_hour)}
    for key, (name, rate, step_s) in zip(("read", "one", "eight", "full"), cases, strict=True):
        price = 1e6 * float(price_per_token(price_per_gpu_hour, rate / gpus))
        energy = float(energy_per_token(power_w, power_overhead, rate / gpus))
        rows.append((name, step_s, rate / gpus, price, energy))
        values |= {f"{key}_price": Named(price), f"{key}_energy": Named(energy, "J")}
    columns = (
        Column(label="tokens"),
        Column(label="step", unit="s", spec="time"),
        Column(label="tokens per s per GPU", spec=",.0f"),
        Column(label="USD per million", spec=".2f"),
        Column(label="J per token", spec=".3g"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
