"""Hardware, models and runs of the catalog, one page each."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from figgen import catalog
from figgen.catalog import Accelerator, Link, Model, Run, TrainingPreset, Value
from figgen.catalog.hardware import DTYPES
from figgen.generated.data_tables import (
    Cell,
    Row,
    Sources,
    anchor,
    of_number,
    of_value,
    table,
)
from figgen.generated.fences import figure
from figgen.units import format_quantity

LADDER = figure(
    "bandwidth-ladder",
    "",
    caption="From its memory to its network port, an H100's bandwidth falls "
    "{{ h100_span:.0f}}-fold; NVLink bandwidth is in between.",
    alt="Bars on a logarithmic axis for memory, NVLink, PCIe and InfiniBand of three generations. "
    "H100: {{ h100_hbm:si }}, {{ h100_nvlink:si }}, {{ h100_pcie:si }}, {{ h100_infiniband:si }}.",
)
GROWTH = figure(
    "model-growth",
    "",
    caption="{{ models }} of the models by the month of their publication, up to {{ largest:si }} "
    "parameters; the steps are the most that one GPU of the time can train.",
    alt="Points of parameters over years on a logarithmic axis, dense models and those with "
    "experts, above a step line from {{ first_held:si }} to {{ last_held:si }}.",
)
PUBLISHED = figure(
    "mfu-by-gpus",
    "",
    caption="The number of accelerators explains little of the utilization: {{ large }} runs on a "
    "thousand or more reach {{ large_least:.0%}} to {{ large_most:.0%}}, all {{ count }} runs "
    "{{ least:.0%}} to {{ most:.0%}}. {{ derived }} of the points are computed from printed tokens "
    "per second, and {{ narrow }} are shares of the peak in FP8 or FP4, which is two to "
    "{{ widest:.0f}} times the 16-bit peak; the lowest is {{ lowest }}.",
    alt="Points of MFU over accelerators on a logarithmic axis, apart by the dense peak that they "
    "are a share of, 16-bit, FP8 or FP4, and by whether they were printed or derived.",
)

READING = (
    "Values are written as their source prints them, with the range where sources differ.\n"
    "A number in brackets names the source: of a row in its last column, of a single value next to "
    "it; † marks a value that was not checked at the source.\n"
    "Remarks on rows are under [notes](#notes).\n"
    "Click a heading to sort, and the # of a row for its address.\n"
)


def catalog_pages() -> dict[str, str]:
    """Return the pages by path."""
    return {
        "reference/hardware.md": hardware_page(),
        "reference/models.md": models_page(),
        "reference/runs.md": runs_page(),
    }


Noted = Accelerator | Link | Model | Run


def _page(
    title: str, about: str, words: str, body: str, noted: Iterable[Noted], sources: Sources
) -> str:
    return (
        f"---\ndescription: {about}\nhide: [toc]\n---\n\n# {title}\n\n{words}{READING}\n{body}\n"
        f"## Notes {{ data-search-exclude }}\n\n{_notes(noted)}\n"
        f"## Sources {{ data-search-exclude }}\n\n{sources.html()}"
    )


def _notes(noted: Iterable[Noted]) -> str:
    """Return each note of the catalog once, after the rows that it is about."""
    rows: dict[str, list[str]] = {}
    for entry in noted:
        if entry.note:
            link = f"[{escape(entry.title, quote=False)}](#{anchor(entry.name)})"
            rows.setdefault(escape(entry.note, quote=False), []).append(link)
    return "".join(f"- {'; '.join(about)}: {note}\n" for note, about in rows.items())


def hardware_page() -> str:
    """Accelerators, and links between them."""
    sources = Sources()
    chips = table("Accelerators", CHIPS, [_chip(a) for a in catalog.ACCELERATORS.values()], sources)
    links = table("Links", LINKS, [_link(found) for found in catalog.LINKS.values()], sources)
    return _page(
        "Hardware",
        "Accelerators and links with dense peaks, memory and bandwidth of one direction, each "
        "value with its source.",
        "Peaks are dense and bandwidths are for one direction, even if a datasheet adds up both; "
        "the [conventions](conventions.md) explain why.\n"
        "[](#fig-bandwidth-ladder) compares the links of three generations.\n",
        f"{LADDER}\n## Accelerators\n\n{chips}\n## Links\n\n"
        "Rates for both directions, as vendors print them, are in a separate column and never used "
        f"in computations.\n\n{links}",
        (*catalog.ACCELERATORS.values(), *catalog.LINKS.values()),
        sources,
    )


CHIPS = (
    "accelerator",
    "name",
    "year",
    "memory",
    "memory reported",
    "memory bandwidth",
    *(f"dense {dtype.upper()}" for dtype in DTYPES),
    "BF16 measured",
    "scale-up link",
    "scale-up per GPU",
    "domain",
    "power",
)


def _chip(chip: catalog.Accelerator) -> Row:
    own = chip.source
    rate = chip.scale_up_bandwidth_bytes_per_s
    return Row(
        chip.name,
        (
            Cell(text=chip.title),
            Cell(text=chip.name),
            Cell(text=str(chip.year), key=chip.year),
            of_value(chip.hbm_capacity, own),
            of_value(chip.hbm_reported, own),
            of_value(chip.hbm_bandwidth, own),
            *(of_value(getattr(chip, dtype), own) for dtype in DTYPES),
            of_value(chip.measured_bf16, own),
            Cell(text=chip.scale_up.title, link=f"#{anchor(chip.scale_up.name)}"),
            Cell(text=format_quantity(rate, "B/s", "si"), key=rate),
            of_number(chip.scale_up_domain),
            of_value(chip.tdp, own),
        ),
        own,
    )


LINKS = (
    "link", "name", "kind", "per", "one direction", "both directions", "latency", "achieved",
)  # fmt: skip


def _link(link: catalog.Link) -> Row:
    own, both = link.source, link.both_directions_bytes_per_s
    return Row(
        link.name,
        (
            Cell(text=link.title),
            Cell(text=link.name),
            Cell(text=link.kind),
            Cell(text=link.per),
            of_value(link.bandwidth, own),
            Cell(text=format_quantity(both, "B/s", "si"), key=both),
            of_value(link.latency or link.step_latency, own),
            of_value(link.achieved_bandwidth, own),
        ),
        own,
    )


MODELS = (
    "model", "name", "layers", "hidden", "heads", "KV heads", "FFN", "vocabulary", "sequence",
    "experts", "parameters, published", "summed from the shape", "active, summed", "tokens",
)  # fmt: skip


def models_page() -> str:
    """Shapes of published models."""
    sources = Sources()
    body = table("Models", MODELS, [_model(m) for m in catalog.MODELS.values()], sources)
    explained = "\n".join(
        escape(f"- {m.title}: {m.explained}", quote=False)
        for m in catalog.MODELS.values()
        if m.explained
    )
    return _page(
        "Models",
        "Shapes of published models, with parameters as published and as summed from the shape.",
        "The sum of parameters is computed from the shape and tested against the published "
        "count.\n[](#fig-model-growth) shows some of them over the years.\n",
        f"{GROWTH}\n{body}\n## Where the sum differs {{ data-search-exclude }}\n\n{explained}\n",
        catalog.MODELS.values(),
        sources,
    )


def _model(model: catalog.Model) -> Row:
    shape, experts = model.shape, model.shape.experts
    own = model.source
    mixture = (
        Cell(text="–")
        if experts is None
        else Cell(
            text=f"{experts.count} choose {experts.top_k}"
            + (f" + {experts.shared}" * (experts.shared > 0)),
            key=experts.count,
        )
    )
    return Row(
        model.name,
        (
            Cell(text=model.title),
            Cell(text=model.name),
            of_number(shape.layers),
            of_number(shape.hidden),
            of_number(shape.heads),
            of_number(shape.kv_heads),
            of_number(shape.ffn_hidden),
            of_number(shape.vocab),
            of_number(shape.sequence),
            mixture,
            of_value(model.published_parameters, own, _si(model.published_parameters)),
            of_number(model.parameters, f"{model.parameters:,}"),
            of_number(model.active_parameters, f"{model.active_parameters:,}"),
            of_value(model.tokens, own, _si(model.tokens)),
        ),
        own,
    )


def _si(value: Value | None) -> str:
    return "" if value is None else format_quantity(value.value, "1", "si")


RUNS = (
    "run", "model", "accelerator", "GPUs", "TP", "CP", "PP", "DP", "EP", "chunks", "microbatch",
    "global batch", "sequence", "ZeRO", "multiplied in", "recomputed", "step", "tokens/s per GPU",
    "FLOP/s per GPU", "counted", "MFU", "of the peak in", "HFU", "memory",
)  # fmt: skip


def runs_page() -> str:
    """Published training runs."""
    sources = Sources()
    pages = {
        preset.run.name: f"../presets/{preset.name}/"
        for preset in catalog.PRESETS.values()
        if isinstance(preset, TrainingPreset)
    }
    rows = [_run(run, pages.get(run.name, "")) for run in catalog.RUNS.values()]
    return _page(
        "Runs",
        "Published training runs with layout, batch, step time and utilisation, each with its "
        "source.",
        "A dash means that a number was not published; runs that have their own page are links.\n"
        "Rates are per accelerator; `counted` says whether a FLOP rate counts what the model "
        "needs or what the hardware does, recomputation included.\n"
        "[](#fig-mfu-by-gpus) compares their utilisation.\n",
        PUBLISHED + "\n" + table("Runs", RUNS, rows, sources),
        catalog.RUNS.values(),
        sources,
    )


def _run(run: catalog.Run, page: str) -> Row:
    own = run.source
    numbers = (run.gpus, run.tp, run.cp, run.pp, run.dp, run.ep, run.virtual_stages,
               run.microbatch, run.global_batch, run.sequence, run.zero_stage)  # fmt: skip
    return Row(
        run.name,
        (
            Cell(text=run.title, link=page),
            Cell(text=run.model.title, link=f"../models/#{anchor(run.model.name)}"),
            Cell(text=run.accelerator.title, link=f"../hardware/#{anchor(run.accelerator.name)}"),
            *map(of_number, numbers),
            Cell(text=run.precision),
            Cell(text=run.recompute or "–"),
            of_value(run.step_time, own),
            of_value(run.tokens_per_s, own),
            of_value(run.flops_rate, own),
            Cell(text=run.flops_kind if run.flops_rate else "–"),
            of_value(run.mfu, own),
            Cell(text=run.mfu_dtype.upper() if run.mfu else "–"),
            of_value(run.hfu, own),
            of_value(run.peak_memory, own),
        ),
        own,
    )
