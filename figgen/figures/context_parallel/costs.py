"""Costs of context parallelism: when the ring hides, bytes sent, bytes held."""

from __future__ import annotations

from figgen.catalog import Model, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Style, Table
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.figures.roofline.levels import levels
from figgen.formulas.context_parallel import (
    kv_ring_buffer_bytes,
    ring_attention_forward_bytes,
    ring_attention_min_tokens,
)
from figgen.models.algorithms.context_exchange import KV_FORMS, kv_elements_per_token, ulysses_bytes
from figgen.plotting.series import doublings, line
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
            least = 2 * ring_attention_min_tokens(
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


@figure("cp-min-tokens")
def cp_min_tokens(
    *, presets: tuple[str, ...] = ("a100-hdr", "h100-ndr", "b200-ndr"), dtype: str = "bf16"
) -> Table:
    """Tokens per rank from which attention hides the ring, by accelerator, link and KV heads."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in presets:
        node = hardware_preset(name)
        peak = node.accelerator.peak_flops_per_s(dtype)
        _, scale_up, nic, _ = levels(node, 1)
        for level in (scale_up, nic):
            least = [
                ring_attention_min_tokens(peak, level.bandwidth_bytes_per_s, BYTES, heads, 1)
                for heads in (1, 4, 8, 16)
            ]
            causal = (2 * tokens for tokens in least)
            rows.append((node.gpu, level.name, level.bandwidth_bytes_per_s, least[0], *causal))
            generation = name.partition("-")[0]
            for heads, tokens in zip((1, 4, 8, 16), least, strict=True):
                values[f"{generation}_{level.key}_{heads}"] = Named(2 * tokens, "token")
            values[f"{generation}_{level.key}_full"] = Named(least[0], "token")
    columns = (
        Column(label="GPU"),
        Column(label="ring over"),
        Column(label="per direction", unit="B/s", spec="si"),
        Column(label="full, 1:1", spec=",.0f"),
        *(Column(label=f"causal, {heads}:1", spec=",.0f") for heads in (1, 4, 8, 16)),
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
        y=Axis(label="sent per rank and layer, forward", unit="B", scale="log10", spec="bytes"),
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
    """Per layer and rank in forward: bytes sent and held by the ring, the gather and all-to-all."""
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
    columns = (
        Column(label="model"),
        Column(label="heads, KV heads"),
        Column(label="ring or gather sends", unit="B", spec="si"),
        Column(label="all-to-all sends", unit="B", spec="si"),
        Column(label="ring holds", unit="B", spec="si"),
        Column(label="gather holds", unit="B", spec="si"),
        Column(label="largest C, all-to-all"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _exchange(found: Model, form: str, cp: int, sequence: int) -> tuple[Scalar, ...]:
    """A row: the keys and values of one token are `width` elements each, on average."""
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
        "–" if form == "latent" else found.heads,
    )


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
