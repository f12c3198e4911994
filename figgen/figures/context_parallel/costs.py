"""Costs of context parallelism: when the ring is hidden, bytes sent, bytes held."""

from __future__ import annotations

from figgen.catalog import Model, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Curves, Named, Rule, Scalar, Style, Table
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.figures.roofline.levels import levels
from figgen.formulas.compute_and_roofline import attention_core_flops
from figgen.formulas.context_parallel import (
    causal_ring_attention_min_tokens,
    kv_ring_buffer_bytes,
    kv_transfer_time,
    ring_attention_forward_bytes,
)
from figgen.models.algorithms.context_exchange import KV_FORMS, kv_elements_per_token, ulysses_bytes
from figgen.plotting.placed import headings
from figgen.plotting.series import doublings, line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure

BYTES = 2


@figure("cp-overlap", explorable=True, recomputed=True)
def cp_overlap(
    *,
    preset: HardwareName = "h100-ndr",
    models: tuple[ModelName, ...] = ("gpt-3-175b", "llama-3-405b"),
    most: int = 65536,
) -> Curves:
    """Attention of one balanced causal step over the time of its message, by tokens per rank."""
    check_between("most", most, 512, 2**24)
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s()
    _, scale_up, nic, _ = levels(node, 1)
    tokens = doublings(most, 256)
    series, values = [], {}
    for index, name in enumerate(models):
        found = catalog_model(name)
        for level in (scale_up, nic):
            least = causal_ring_attention_min_tokens(
                peak, level.bandwidth_bytes_per_s, BYTES, found.heads, found.kv_heads
            )
            times = (t / least for t in tokens)
            style: Style = "line" if level is scale_up else "dashed"
            series.append(
                line(f"{found.title}, {level.name}", map(float, tokens), times, index, style)
            )
            values[f"{identifier(name)}_{level.key}_tokens"] = Named(least, "token")
    return Curves(
        x=Axis(label="tokens per rank", scale="log2", spec=","),
        y=Axis(label="attention over transfer", scale="log10", spec="g"),
        series=tuple(series),
        rules=(Rule(axis="y", at=1.0, label="hidden above"),),
        values=values,
    )


@figure("ring-step-times", explorable=True, recomputed=True)
def ring_step_times(
    *, preset: HardwareName = "h100-ndr", model: ModelName = "llama-3-8b", tokens: int = 8192
) -> Bars:
    """One step of a balanced ring on a rank with this many tokens: attention and its message."""
    check_between("tokens", tokens, 2, 2**24)
    node, found = hardware_preset(preset), catalog_model(model)
    _, scale_up, nic, _ = levels(node, 1)
    # Of the block's pairs the mask leaves half.
    flops = attention_core_flops(1, tokens, found.heads * found.head_dim) / 2
    times = {"attention": float(flops / node.accelerator.peak_flops_per_s())}
    width = found.kv_heads * found.head_dim
    for level in (scale_up, nic):
        sent = kv_transfer_time(tokens, width, BYTES, level.bandwidth_bytes_per_s)
        times[level.key] = float(sent)
    return Bars(
        labels=(
            "attention to one block",
            *(f"next block over {level.name}" for level in (scale_up, nic)),
        ),
        segments=segments({"time": list(times.values())}),
        axis=Axis(label="time", unit="s", low=0.0, spec="time"),
        values={
            **{name: Named(seconds, "s") for name, seconds in times.items()},
            "block": Named(2 * tokens * width * BYTES, "B"),
            "tokens": Named(tokens, "token"),
        },
    )


@figure("cp-min-tokens")
def cp_min_tokens(
    *, presets: tuple[str, ...] = ("a100-hdr", "h100-ndr", "b200-ndr"), dtype: str = "bf16"
) -> Table:
    """Tokens per rank above which causal attention hides the ring, by GPU, link and KV heads."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in presets:
        node = hardware_preset(name)
        peak = node.accelerator.peak_flops_per_s(dtype)
        _, scale_up, nic, _ = levels(node, 1)
        for level in (scale_up, nic):
            least = [
                causal_ring_attention_min_tokens(peak, level.bandwidth_bytes_per_s, BYTES, heads, 1)
                for heads in (1, 4, 8, 16)
            ]
            rows.append((node.gpu, level.name, level.bandwidth_bytes_per_s, *least))
            generation = name.partition("-")[0]
            for heads, tokens in zip((1, 4, 8, 16), least, strict=True):
                values[f"{generation}_{level.key}_{heads}"] = Named(tokens, "token")
    columns = (
        *headings("GPU", "ring over"),
        Column(label="per direction", unit="B/s", spec="si"),
        *(Column(label=f"{heads}:1", spec=",.0f") for heads in (1, 4, 8, 16)),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("cp-volume", explorable=True, recomputed=True)
def cp_volume(
    *, model: ModelName = "llama-3-405b", sequence_length: int = 131072, most: int = 64
) -> Curves:
    """Bytes that a rank sends per layer in forward: keys and values round a ring, or all-to-all."""
    found = catalog_model(model)
    check_between("most", most, 2, found.heads)
    sizes = doublings(most)

    def all_to_all(heads: int) -> list[float]:
        shards = ((n, sequence_length // n) for n in sizes)
        return [ulysses_bytes(found.shape, cp=n, tokens=s, kv_heads=heads) for n, s in shards]

    lines: dict[str, tuple[str, list[float]]] = {}
    for suffix, heads in (("_full", found.heads), ("", found.kv_heads)):
        width = heads * found.head_dim
        sent = [_ring(n, sequence_length, width) for n in sizes]
        lines[f"ring{suffix}"] = (f"ring, {heads} KV heads", sent)
        lines[f"all_to_all{suffix}"] = (f"all-to-all, {heads} KV heads", all_to_all(heads))
    series = tuple(
        line(title, map(float, sizes), y, at, "line" if name.startswith("ring") else "dashed")
        for at, (name, (title, y)) in enumerate(lines.items())
    )
    values = {
        f"{name}_cp{n}": Named(bytes_, "B")
        for name, (_, y) in lines.items()
        for n, bytes_ in zip(sizes, y, strict=True)
    }
    pairs = zip(lines["ring"][1], lines["all_to_all"][1], sizes, strict=True)
    cheaper = [n for ring, other, n in pairs if other < ring]
    values["first_cheaper"] = Named(cheaper[0] if cheaper else 0, "rank")
    return Curves(
        x=Axis(label="context-parallel size C", scale="log2", spec=","),
        y=Axis(label="sent per rank per layer, forward", unit="B", scale="log10", spec="bytes"),
        series=series,
        values=values,
    )


def _ring(cp: int, sequence_length: int, kv_width: float) -> float:
    return float(ring_attention_forward_bytes(cp, 1, sequence_length, kv_width, BYTES))


@figure("cp-exchanges")
def cp_exchanges(
    *,
    models: tuple[str, ...] = ("gpt-3-175b", "llama-3-8b", "llama-3-405b", "deepseek-v3"),
    cp: int = 8,
    sequence_length: int = 131072,
) -> Table:
    """Per layer per rank in forward: bytes sent and held by the ring, the gather and all-to-all."""
    check_between("cp", cp, 2, 1024)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"cp": Named(cp), "sequence_length": Named(sequence_length, "token")}
    for name in models:
        found = catalog_model(name)
        for form in KV_FORMS if found.shape.latent else KV_FORMS[:1]:
            rows.append(_exchange(found, form, cp, sequence_length))
            label = identifier(name) + ("_latent" if form == "latent" else "")
            for at, what in enumerate(("ring", "all_to_all", "buffer", "gathered"), 2):
                values[f"{label}_{what}"] = Named(rows[-1][at], "B")
            values[f"{label}_from"] = Named(rows[-1][-1], "rank")
    columns = (
        *headings("model", "heads, KV heads"),
        *headings(
            "ring or gather sends",
            "all-to-all sends",
            "ring holds",
            "gather holds",
            unit="B",
            spec="si",
        ),
        Column(label="all-to-all sends less from C ="),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _exchange(found: Model, form: str, cp: int, sequence: int) -> tuple[Scalar, ...]:
    """Return a row; the keys and values of one token are `width` elements each, on average."""
    width = kv_elements_per_token(found.shape, form) / 2
    heads = f"{found.heads}, {found.kv_heads}"
    if found.shape.latent:
        heads = f"{found.heads}, {'latent' if form == 'latent' else 'expanded'}"
    sent = ulysses_bytes(found.shape, cp=cp, tokens=sequence // cp)
    return (
        found.title,
        heads,
        float(ring_attention_forward_bytes(cp, 1, sequence, width, BYTES)),
        "–" if form == "latent" else sent,
        float(kv_ring_buffer_bytes(1, sequence, cp, width, BYTES)),
        2.0 * sequence * width * BYTES,
        "–" if form == "latent" else cheaper_from(found, width),
    )


def cheaper_from(found: Model, kv_width: float) -> int:
    """Return the smallest size that divides the heads at which all-to-all sends less."""
    for cp in range(2, found.heads + 1):
        if found.heads % cp == 0:
            # One token per rank: both volumes are proportional to a rank's tokens.
            ring = ring_attention_forward_bytes(cp, 1, cp, kv_width, BYTES)
            if ulysses_bytes(found.shape, cp=cp, tokens=1) < ring:
                return cp
    raise AssertionError("with a rank per head all-to-all sends less")


@figure("kv-buffer", explorable=True, recomputed=True)
def kv_buffer(*, model: ModelName = "llama-3-405b", cp: tuple[int, ...] = (8, 16)) -> Curves:
    """Bytes of keys and values of one layer that a rank holds for the exchange, by length."""
    found = catalog_model(model)
    lengths = doublings(2**20, 2**13)
    grouped, full = (n * found.head_dim for n in (found.kv_heads, found.heads))
    lines = {
        "full": (f"ring, C = {cp[0]}, {found.heads} KV heads", full, cp[0]),
        "gathered": (f"gather, {found.kv_heads} KV heads", grouped, 2),
        **{f"ring_{n}": (f"ring, C = {n}, {found.kv_heads} KV heads", grouped, n) for n in cp},
    }
    series = []
    values = {
        "first": Named(lengths[0], "token"),
        "short": Named(2**17, "token"),
        "last": Named(lengths[-1], "token"),
    }
    for index, (name, (title, width, ways)) in enumerate(lines.items()):
        # Gathering holds the sequence once, as much as two buffers of half of it.
        y = tuple(float(kv_ring_buffer_bytes(1, s, ways, width, BYTES)) for s in lengths)
        series.append(line(title, map(float, lengths), y, index))
        values[f"{name}_131k"] = Named(y[lengths.index(2**17)], "B")
        values[f"{name}_1m"] = Named(y[-1], "B")
    return Curves(
        x=Axis(label="tokens of the sequence", scale="log2", spec=","),
        y=Axis(label="keys and values held", unit="B", scale="log10", spec="bytes"),
        series=tuple(series),
        values=values,
    )
