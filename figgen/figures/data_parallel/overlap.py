"""Buckets and overlap: the part of the all-reduce that hides behind the backward pass."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Series, Slot, Table, Timeline
from figgen.errors import check_between
from figgen.figures.data_parallel.replicas import ReplicatedJob, job
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.data_parallel import (
    best_bucket_count,
    chunked_all_reduce_time,
    exposed_communication_time,
    scaling_efficiency,
)
from figgen.models.algorithms.gradient_overlap import (
    BUCKET_BYTES,
    FIRST_BUCKET_BYTES,
    MIB,
    ReducedBucket,
    exposed_s,
    gradient_tensors,
    reduced_buckets,
)
from figgen.models.step.gradient_buckets import best_number
from figgen.plotting.placed import headings
from figgen.plotting.series import doublings, line
from figgen.plotting.words import identifier
from figgen.registry import figure

GRADIENT_BYTES = 2
SLIVER = 0.03
"""Share of the time axis below which a piece is too narrow for a label."""


def filled_buckets(
    model: str,
    found: ReplicatedJob,
    first: float,
    cap: float,
    *,
    gradient_bytes: int = GRADIENT_BYTES,
) -> tuple[ReducedBucket, ...]:
    """Return the model's buckets during the backward of `found`; `first` and `cap` in bytes."""
    return reduced_buckets(
        gradient_tensors(catalog_model(model).shape),
        backward_s=found.backward_s,
        bytes_per_element=gradient_bytes,
        seconds_per_byte=found.seconds_per_byte,
        bucket_overhead_s=found.bucket_overhead_s,
        first_bucket_bytes=first,
        bucket_bytes=cap,
    )


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Seconds of one backward over its buckets, and of one all-reduce after it."""

    backward_s: float
    all_reduce_s: float
    exposed_s: float

    @property
    def naive_s(self) -> float:
        return self.backward_s + self.all_reduce_s

    @property
    def bucketed_s(self) -> float:
        return self.backward_s + self.exposed_s

    @property
    def hidden(self) -> float:
        """Share of the all-reduce that backward hides."""
        return 1 - self.exposed_s / self.all_reduce_s


def overlap(
    found: ReplicatedJob,
    buckets: tuple[ReducedBucket, ...],
    *,
    gradient_bytes: int = GRADIENT_BYTES,
) -> Overlap:
    """Return the exposed time with buckets and with one all-reduce after the backward pass."""
    return Overlap(
        backward_s=found.backward_s,
        all_reduce_s=found.bucket_overhead_s
        + gradient_bytes * found.parameters * found.seconds_per_byte,
        exposed_s=exposed_s(buckets, found.backward_s),
    )


def overlap_values(
    found: Overlap, buckets: tuple[ReducedBucket, ...], *, ranks: int, tokens: int
) -> dict[str, Named]:
    """Return the values for captions."""
    return {
        "backward_s": Named(found.backward_s, "s"),
        "naive_s": Named(found.naive_s, "s"),
        "bucketed_s": Named(found.bucketed_s, "s"),
        "all_reduce_s": Named(found.all_reduce_s, "s"),
        "exposed_s": Named(found.exposed_s, "s"),
        "hidden": Named(found.hidden),
        "buckets": Named(len(buckets), "bucket"),
        "first_bytes": Named(buckets[0].bytes, "B"),
        "last_bytes": Named(buckets[-1].bytes, "B"),
        "tokens": Named(tokens, "token"),
        "ranks": Named(ranks),
    }


def _slots(
    lane: int, buckets: tuple[ReducedBucket, ...], backward_s: float, end_s: float
) -> list[Slot]:
    """Return the backward, cut where buckets fill, and below it each bucket's all-reduce."""
    slots, done = [], 0.0
    for index, bucket in enumerate(buckets):
        detail = f"bucket {index}: {bucket.bytes / MIB:.0f} MiB, {len(bucket.tensors)} tensors"
        for on, start, end, role in (
            (lane, done, bucket.ready_s, "backward"),
            (lane + 1, bucket.start_s, min(bucket.end_s, backward_s), "hidden"),
            (lane + 1, max(bucket.start_s, backward_s), bucket.end_s, "exposed"),
        ):
            if end > start:
                # Short labels widen the picture until they fit; a sliver keeps a long one instead.
                label = str(index) if end - start > SLIVER * end_s else f"bucket {index}"
                slots.append(
                    Slot(lane=on, start=start, end=end, role=role, label=label, detail=detail)
                )
        done = max(done, bucket.ready_s)
    return slots


@figure("ddp-buckets", explorable=True, recomputed=True)
def ddp_buckets(
    *,
    model: ModelName = "gpt-2-xl",
    preset: HardwareName = "h100-ndr",
    ranks: int = 8,
    ranks_per_node: int = 1,
    tokens: int = 8192,
    bucket_mib: int = 350,
    first_bucket_mib: int = 150,
    utilization: float = 0.4,
) -> Timeline:
    """One backward with its all-reduce after it, and the same backward bucket by bucket.

    Buckets are filled from the model's own matrices, last layer first, by PyTorch's rule.
    """
    check_between("bucket_mib", bucket_mib, 1, 2**20)
    node = hardware_preset(preset)
    found = job(
        model=model,
        node=node,
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        tokens=tokens,
        utilization=utilization,
    )
    buckets = filled_buckets(model, found, first_bucket_mib * MIB, bucket_mib * MIB)
    times = overlap(found, buckets)
    end = max(times.naive_s, buckets[-1].end_s)
    slots = [
        Slot(lane=0, start=0, end=found.backward_s, role="backward", label="whole backward"),
        Slot(
            lane=1,
            start=found.backward_s,
            end=times.naive_s,
            role="exposed",
            label="one all-reduce",
        ),
        *_slots(2, buckets, found.backward_s, end),
    ]
    default = filled_buckets(model, found, FIRST_BUCKET_BYTES, BUCKET_BYTES)
    values = overlap_values(times, buckets, ranks=ranks, tokens=tokens) | {
        "saved": Named(1 - times.bucketed_s / times.naive_s),
        "largest_bytes": Named(max(bucket.bytes for bucket in buckets), "B"),
        "overhead_s": Named(found.bucket_overhead_s, "s"),
        "default_buckets": Named(len(default), "bucket"),
        "default_exposed_s": Named(exposed_s(default, found.backward_s), "s"),
    }
    return Timeline(
        lanes=("backward", "network", "backward", "network"),
        slots=tuple(slots),
        end=end,
        time_label="time from the start of the backward",
        time_unit="s",
        values=values,
    )


@figure("bucket-tradeoff", explorable=True, recomputed=True)
def bucket_tradeoff(
    *,
    model: ModelName = "gpt-2-xl",
    preset: HardwareName = "h100-ndr",
    ranks: int = 8,
    tokens: int = 8192,
    utilization: float = 0.4,
    caps_mib: tuple[int, ...] = (8, 25, 50, 100, 200, 400, 800, 1600),
    most_buckets: int = 512,
) -> Curves:
    """Total and exposed time of the all-reduce over the number of buckets, one rank per node.

    Lines: equal buckets, closed form. Points: PyTorch's buckets of the model's own matrices.
    """
    check_between("most_buckets", most_buckets, 2, 2**16)
    node = hardware_preset(preset)
    found = job(
        model=model,
        node=node,
        ranks=ranks,
        ranks_per_node=1,
        tokens=tokens,
        utilization=utilization,
    )
    size, backward, overhead = 2 * found.parameters, found.backward_s, found.bucket_overhead_s
    pure = size * found.seconds_per_byte
    counts = tuple(sorted({round(2 ** (k / 2)) for k in range(2 * most_buckets.bit_length() - 1)}))
    x = tuple(map(float, counts))
    bandwidth = node.network_bandwidth_bytes_per_s
    total = tuple(chunked_all_reduce_time(ranks, n, size, bandwidth, overhead) for n in counts)
    exposed = tuple(exposed_communication_time(pure, backward, n, overhead) for n in counts)
    built = {cap: filled_buckets(model, found, FIRST_BUCKET_BYTES, cap * MIB) for cap in caps_mib}
    real = sorted((float(len(b)), exposed_s(b, backward)) for b in built.values())
    real_counts, real_exposed = zip(*real, strict=True)
    best = best_number(pure, backward, overhead)
    left = exposed_communication_time(pure, backward, best, overhead)
    values = {
        "best": Named(best, "bucket"),
        "best_exposed_s": Named(left, "s"),
        "closed_best": Named(best_bucket_count(pure, overhead), "bucket"),
        "one_exposed_s": Named(exposed[0], "s"),
        "most_total_s": Named(total[-1], "s"),
        "backward_s": Named(backward, "s"),
        "pure_s": Named(pure, "s"),
        "overhead_s": Named(overhead, "s"),
        "best_bucket_bytes": Named(size / best, "B"),
        **{f"cap_{cap}_buckets": Named(len(b), "bucket") for cap, b in built.items()},
        **{f"cap_{cap}_exposed_s": Named(exposed_s(b, backward), "s") for cap, b in built.items()},
    }
    return Curves(
        x=Axis(label="buckets", scale="log2", spec=","),
        y=Axis(label="time", unit="s", low=0.0, high=1.6 * pure, spec="time"),
        series=(
            line("all of it", map(float, counts), total, 0, "dashed"),
            Series(name="exposed, equal buckets", x=x, y=exposed, role="exposed"),
            line("exposed, real matrices", real_counts, real_exposed, 1, "points"),
        ),
        rules=(Rule(axis="x", at=best, label=f"best: {best}"),),
        values=values,
    )


@figure("ddp-bucket-table")
def ddp_bucket_table(
    *,
    models: tuple[str, ...] = ("bert-large", "gpt-2-xl", "llama-2-7b", "llama-3-8b"),
    bucket_mib: int = 25,
    bytes_per_element: int = 2,
) -> Table:
    """PyTorch's buckets for real models, and how far their sizes are from the cap."""
    check_between("bucket_mib", bucket_mib, 1, 2**20)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in models:
        entry = catalog_model(name)
        tensors = gradient_tensors(entry.shape)
        buckets = reduced_buckets(
            tensors,
            backward_s=1.0,
            bytes_per_element=bytes_per_element,
            seconds_per_byte=0.0,
            bucket_overhead_s=0.0,
            bucket_bytes=bucket_mib * MIB,
        )
        sizes = sorted(bucket.bytes for bucket in buckets)
        matrix = max(t.elements for t in tensors if t.layer is not None) * bytes_per_element
        median, last = sizes[len(sizes) // 2], buckets[-1].bytes
        rows.append((entry.title, sum(sizes), matrix, len(buckets), median, last))
        key = identifier(name)
        values |= {
            f"{key}_buckets": Named(len(buckets), "bucket"),
            f"{key}_median": Named(median, "B"),
            f"{key}_last": Named(last, "B"),
            f"{key}_matrix": Named(matrix, "B"),
        }
    columns = (
        Column(label="model"),
        *headings("gradient", "largest matrix of a layer", unit="B", spec="bytes"),
        Column(label="buckets", spec="d"),
        *headings("median bucket", "last bucket", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("data-parallel-scaling", explorable=True, recomputed=True)
def data_parallel_scaling(
    *,
    model: ModelName = "gpt-2-xl",
    preset: HardwareName = "h100-ndr",
    tokens: tuple[int, ...] = (512, 1024, 4096, 16384),
    most_nodes: int = 256,
    utilization: float = 0.4,
) -> Curves:
    """Scaling efficiency over GPUs at a fixed batch per GPU, with the best number of buckets.

    Speed-up is tokens per second relative to one GPU; beyond the first node, nodes are whole.
    """
    check_between("most_nodes", most_nodes, 2, 2**13)
    node = hardware_preset(preset)
    each = node.gpus_per_node
    inside = [n for n in (1, 2, 4) if n < each]
    gpus = [*inside, *(each * nodes for nodes in doublings(most_nodes, 1))]
    series, values = [], {"gpus": Named(gpus[-1]), "per_node": Named(each)}
    for index, count in enumerate(tokens):
        y = tuple(_efficiency(model, preset, n, each, count, utilization) for n in gpus)
        series.append(line(f"{count:,} tokens per GPU", map(float, gpus), y, index))
        values[f"tokens_{count}_last"] = Named(y[-1])
        values[f"tokens_{count}_node"] = Named(y[gpus.index(each)])
        values[f"tokens_{count}_two_nodes"] = Named(y[gpus.index(2 * each)])
        values[f"tokens_{count}_speedup"] = Named(y[-1] * gpus[-1])
    return Curves(
        x=Axis(label="GPUs", scale="log2", spec=","),
        y=Axis(label="scaling efficiency", low=0.0, high=1.05, spec=".0%"),
        series=tuple(series),
        rules=(Rule(axis="x", at=each, label="one node"),),
        values=values,
    )


def _efficiency(
    model: str, preset: str, ranks: int, each: int, tokens: int, utilization: float
) -> float:
    found = job(
        model=model,
        node=hardware_preset(preset),
        ranks=ranks,
        ranks_per_node=each,
        tokens=tokens,
        utilization=utilization,
    )
    alone = found.forward_s + found.backward_s + found.update_s
    if ranks == 1:
        return 1.0
    pure = GRADIENT_BYTES * found.parameters * found.seconds_per_byte
    best = best_number(pure, found.backward_s, found.bucket_overhead_s)
    left = exposed_communication_time(pure, found.backward_s, best, found.bucket_overhead_s)
    return float(scaling_efficiency(ranks * alone / (alone + left), ranks))
