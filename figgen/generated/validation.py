"""Pages of all measured runs with their predictions: one for the sweep, one for the rest."""

from __future__ import annotations

from urllib.parse import urlencode

from figgen.catalog import load
from figgen.generated.data_tables import Cell, Row, Sources, of_number, table
from figgen.scenarios.evidence.validation import JudgedRun, errors_of, judged_runs
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.residual_classes import class_of
from figgen.units import format_quantity

HEADINGS = (
    "run", "measured", "predicted", "error", "side", "open in", "class", "release", "GPUs", "TP",
    "CP", "PP", "DP", "EP", "chunks", "microbatch", "microbatches", "sequence", "ZeRO",
    "multiplied in",
)  # fmt: skip

SWEEP = "nanotron"


def validation_pages() -> dict[str, str]:
    """Return the pages by path."""
    swept = [judged for judged in judged_runs() if judged.run.framework == SWEEP]
    others = [judged for judged in judged_runs() if judged.run.framework != SWEEP]
    return {
        "validation/runs.md": _page(
            "Every run, predicted and measured",
            "Published training runs with layout, measured and predicted step time, and error.",
            others,
            "The sweep of nanotron has [its own page](sweep.md).\n",
        ),
        "validation/sweep.md": _page(
            "Every layout of the sweep, predicted and measured",
            "Layouts of the Ultra-Scale Playbook's sweep with measured and predicted step time.",
            swept,
            "All other runs are on [a separate page](runs.md).\n",
        ),
    }


def _page(title: str, about: str, judged: list[JudgedRun], words: str) -> str:
    sources = Sources()
    rows = [_row(one) for one in judged]
    found = errors_of("all", judged)
    assert found is not None
    return (
        f"---\ndescription: {about}\nhide: [toc]\n---\n\n# {title}\n\n"
        "[How accurate the predictions are](index.md) summarizes these rows and explains how runs "
        f"were split.\n{words}"
        "`test` marks runs that were not part of the fit; a positive error means that the "
        "predicted step is too long.\n"
        "Click a heading to sort; the filter takes any words of a row, such as a model, a "
        "framework or a release.\n\n"
        + table(title, HEADINGS, rows, sources)
        + f"\n## Sources {{ data-search-exclude }}\n\n{sources.html()}"
    )


def _row(judged: JudgedRun) -> Row:
    run = judged.run
    counts = (run.gpus, run.tp, run.cp, run.pp, run.dp, run.ep, run.virtual_stages,
              run.microbatch, run.microbatches, run.sequence, run.zero_stage)  # fmt: skip
    return Row(
        run.name,
        (
            Cell(text=run.name),
            Cell(text=_seconds(judged.measured_s), key=judged.measured_s),
            Cell(text=_seconds(judged.predicted_s), key=judged.predicted_s),
            Cell(text=f"{judged.error:+.0%}", key=judged.error),
            Cell(text="test" if judged.tested else "fitted"),
            Cell(text="modeler", link=f"../../tools/modeler/?{modeler_query(run)}"),
            Cell(text=class_of(run)),
            Cell(text=run.release or "–"),
            *map(of_number, counts),
            Cell(text=run.number_format),
        ),
        run.source,
    )


def modeler_query(run: DescribedRun) -> str:
    """Return the address that opens a run in the modeler."""
    return urlencode(
        {
            **_model_choices(run),
            "nodes": run.gpus // run.gpus_per_node,
            "gpus": run.gpus_per_node,
            "tp": run.tp,
            "cp": run.cp,
            "pp": run.pp,
            "ep": run.ep,
            "microbatches": run.microbatches,
            "microbatch_size": run.microbatch,
            "sequence": run.sequence,
            "zero": run.zero_stage,
            "chip": run.accelerator.name,
            "nic": run.network.name,
            "dtype": run.dtype,
            **(
                {"schedule": "interleaved-1f1b", "chunks": run.virtual_stages}
                if run.virtual_stages > 1 and run.pp > 1
                else {}
            ),
        }
    )


def _model_choices(run: DescribedRun) -> dict[str, object]:
    shape = run.shape
    known = next(
        (
            name
            for name, model in load.models().items()
            if (model.shape.layers, model.shape.hidden, model.shape.ffn_hidden)
            == (shape.layers, shape.hidden, shape.ffn_hidden)
        ),
        None,
    )
    if known is not None:
        return {"model": known}
    experts = shape.experts
    mixture = (
        {"experts": experts.count, "top_k": experts.top_k, "expert_ffn": experts.ffn_hidden}
        if experts
        else {}
    )
    return {
        "model": "own", "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads,
        "kv_heads": shape.kv_heads, "ffn_hidden": shape.ffn_hidden, "ffn": shape.ffn,
        "vocab": shape.vocab, **mixture,
    }  # fmt: skip


def _seconds(value: float) -> str:
    return format_quantity(value, "s", "time")
