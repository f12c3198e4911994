"""Published training runs: layout, batch, and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from figgen.catalog.hardware import DTYPES, Accelerator
from figgen.catalog.models import Model
from figgen.entries.entry import CatalogEntry
from figgen.entries.read import read_entries, referred
from figgen.entries.schema import Value, choice, count, quantity, text
from figgen.errors import InputError
from figgen.models.shape.transformer import flops_per_token

AXES = ("tp", "cp", "pp", "dp")

RUN_KEYS = {
    "title": text(required=True),
    "family": text(required=True),
    "model": text(required=True),
    "accelerator": text(required=True),
    "gpus": count(1, 1_000_000),
    **{axis: count(1, 100_000) for axis in AXES},
    "ep": count(1, 4096),
    "virtual_stages": count(1, 64),
    "mtp_layers": count(1, 16),
    "microbatch": count(1, 1024),
    "global_batch": count(1, 1_000_000, unit="sequence"),
    "sequence": count(128, 10_000_000, required=True),
    "zero_stage": count(0, 3),
    "dtype": choice(*DTYPES, required=True),
    "precision": text(),
    "mfu_dtype": choice(*DTYPES),
    "recompute": text(),
    "attention": choice("full", "causal"),
    "step_time": quantity("s", "100 ms", "1000 s"),
    "tokens_per_s": quantity("token/s", "1 token/s", "100_000 tokens/s"),
    "flops_rate": quantity("FLOP/s", "10 TFLOP/s", "10 PFLOP/s"),
    "flops_kind": choice("model", "hardware", "unstated"),
    "mfu": quantity("1", "5%", "75%"),
    "mfu_full_attention": quantity("1", "5%", "75%"),
    "hfu": quantity("1", "5%", "75%"),
    "peak_memory": quantity("B", "1 GB", "300 GB"),
    "time_to_train": quantity("s", "1 min", "100 days"),
    "mfu_unchecked": text(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A published run. Sizes that were not published are None; rates are per accelerator.

    `dtype` is the number format of matmuls. `mfu` counts model FLOPs relative to the dense peak of
    `mfu_dtype`, which is the same unless the source says otherwise, with the attention square full
    or halved as `attention` says; `hfu` also counts recomputation. `mfu_unchecked` says why a
    printed MFU cannot be recomputed from other printed numbers.
    """

    name: str
    title: str
    family: str
    model: Model
    accelerator: Accelerator
    gpus: int | None
    tp: int | None
    cp: int | None
    pp: int | None
    dp: int | None
    ep: int
    virtual_stages: int
    mtp_layers: int
    microbatch: int | None
    global_batch: int | None
    sequence: int
    zero_stage: int | None
    dtype: str
    precision: str
    mfu_dtype: str
    recompute: str
    attention: str
    flops_kind: str
    step_time: Value | None
    tokens_per_s: Value | None
    flops_rate: Value | None
    mfu: Value | None
    mfu_full_attention: Value | None
    hfu: Value | None
    peak_memory: Value | None
    time_to_train: Value | None
    mfu_unchecked: str
    source: str
    note: str
    facts: tuple[tuple[str, Value], ...]

    @property
    def microbatches(self) -> int | None:
        """Microbatches of one replica in a step, if batch and layout give them."""
        if self.global_batch is None or self.dp is None or self.microbatch is None:
            return None
        return self.global_batch // (self.dp * self.microbatch)

    @property
    def tokens_per_step(self) -> int | None:
        """Tokens of the global batch."""
        return None if self.global_batch is None else self.global_batch * self.sequence

    @property
    def mfu_peak_flops_per_s(self) -> float:
        """Dense peak to which the run's MFU is relative, FLOP/s."""
        return self.accelerator.peak_flops_per_s(self.mfu_dtype)

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        """Tokens per second and accelerator, from the step time if there is one, or as printed."""
        if self.step_time is not None and self.tokens_per_step is not None and self.gpus:
            return self.tokens_per_step / self.step_time.value / self.gpus
        return None if self.tokens_per_s is None else self.tokens_per_s.value

    def model_flops_utilisation(self, *, causal: bool | None = None) -> float:
        """Return MFU from throughput and the model's shape; `causal` defaults to the run's.

        Source: PaLM, arXiv:2204.02311, appendix B. Raises InputError for a run without throughput.
        """
        rate = self.tokens_per_s_per_gpu
        if rate is None:
            raise InputError(f"run {self.name} prints no throughput")
        halved = self.attention == "causal" if causal is None else causal
        per_token = flops_per_token(self.model.shape, sequence=self.sequence, causal=halved)
        return rate * per_token / self.mfu_peak_flops_per_s


def read_runs(
    file: str,
    content: str,
    sources: Mapping[str, str],
    models: Mapping[str, Model],
    accelerators: Mapping[str, Accelerator],
) -> dict[str, Run]:
    """Return the runs of one file.

    Raises InputError for any mistake in it: an unknown model or accelerator, a layout that does not
    multiply out, a batch that does not divide, or rates that contradict each other.
    """
    entries = read_entries(file, content, RUN_KEYS, sources)
    return {name: _run(entry, models, accelerators) for name, entry in entries.items()}


def _run(
    entry: CatalogEntry, models: Mapping[str, Model], accelerators: Mapping[str, Accelerator]
) -> Run:
    _check_layout(entry)
    words = entry.words
    run = entry.fill(
        Run,
        model=referred(entry, "model", models, "the models"),
        accelerator=referred(entry, "accelerator", accelerators, "accelerators.toml"),
        ep=entry.whole("ep", 1),
        virtual_stages=entry.whole("virtual_stages", 1),
        mtp_layers=entry.whole("mtp_layers"),
        precision=words.get("precision", words["dtype"]),
        mfu_dtype=words.get("mfu_dtype", words["dtype"]),
        attention=words.get("attention", "full"),
        flops_kind=words.get("flops_kind", "unstated"),
    )
    _check_rates(entry, run)
    return run


def _check_layout(entry: CatalogEntry) -> None:
    """Check that a published layout multiplies out to its accelerators and divides its batch."""
    sizes = [entry.optional(axis) for axis in AXES]
    known = [size for size in sizes if size is not None]
    gpus = entry.optional("gpus")
    if len(known) == len(AXES) and gpus is not None and prod(known) != gpus:
        raise entry.place.fault(
            "tp·cp·pp·dp does not multiply out",
            expected=f"{gpus} accelerators",
            got=" · ".join(map(str, known)) + f" = {prod(known)}",
        )
    share = entry.whole("dp", 1) * entry.whole("microbatch", 1)
    if "global_batch" in entry.values and entry.whole("global_batch") % share:
        raise entry.place.at("global_batch").fault(
            "does not divide over dp · microbatch",
            expected=f"a multiple of {share}",
            got=entry.whole("global_batch"),
        )


def _check_rates(entry: CatalogEntry, run: Run) -> None:
    """Check that the accelerator has the peak, and that step time and tokens per second agree."""
    for key in ("dtype", "mfu_dtype"):
        try:
            run.accelerator.peak_flops_per_s(getattr(run, key))
        except InputError as error:
            raise entry.place.at(key).fault(str(error)) from None
    peak = run.accelerator.peak_flops_per_s(run.dtype)
    if run.flops_rate is not None and run.flops_rate.value > peak:
        raise entry.place.at("flops_rate").fault(
            "above the peak", expected=f"at most {peak:g} FLOP/s", got=run.flops_rate.printed
        )
    rate, printed = run.tokens_per_s_per_gpu, run.tokens_per_s
    if rate is not None and printed is not None and abs(rate / printed.value - 1) > 0.015:
        raise entry.place.at("tokens_per_s").fault(
            "contradicts the step time", expected=f"{rate:.4g} tokens/s", got=printed.printed
        )
