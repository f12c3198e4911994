"""Scale-up domains of 8 and of 72 GPUs, compared on the same chip."""

from __future__ import annotations

from figgen.catalog import accelerator, link, nccl_tuning
from figgen.charts import Axis, Column, Curves, Named, Scalar, Series, Table
from figgen.errors import check_between
from figgen.figures.parameters import AcceleratorName, LinkName
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.formulas.compute_and_roofline import efficiency_without_overlap, ridge_point
from figgen.formulas.experts import expert_all_to_all_ccr
from figgen.formulas.hierarchical_collectives import (
    nccl_ring_latency,
    two_level_all_reduce_time,
)
from figgen.formulas.tensor_parallel import tensor_parallel_layer_ccr
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.registry import figure

SIZES = (2, 4, 8, 16, 32, 64)
DOMAINS = (8, 72)


def ring_rate(size: int, domain: int, inside: float, port: float) -> float:
    """Return the bandwidth of a ring of `size` ranks; between nodes, it uses all their adapters."""
    return inside if size <= domain else min(inside, domain * port)


def exchange_rate(size: int, domain: int, inside: float, port: float) -> float:
    """Return the bandwidth of an even all-to-all per rank, part of which stays in the domain."""
    if size <= domain:
        return inside
    leaving = (size - domain) / (size - 1)
    return min(inside / (1 - leaving), port / leaving)


@figure("domain-groups", explorable=True, recomputed=True)
def domain_groups(
    *,
    chip: AcceleratorName = "gb200-nvl72",
    port: LinkName = "ib-ndr",
    hidden: int = 16384,
    sequence: int = 8192,
    ffn_width: int = 2048,
) -> Curves:
    """Share of the peak that remains with exposed messages of TP and of experts, by group size."""
    check_between("hidden", hidden, 64, 10**6)
    check_between("ffn_width", ffn_width, 64, 10**6)
    gpu = accelerator(chip)
    inside, outside = gpu.scale_up_bandwidth_bytes_per_s, link(port).bandwidth_bytes_per_s
    peak = gpu.peak_flops_per_s()
    lines: list[Series] = []
    values: dict[str, Named] = {}
    for axis in ("TP", "EP"):
        for domain in DOMAINS:
            left = []
            for size in SIZES:
                if axis == "TP":
                    ccr = tensor_parallel_layer_ccr(hidden, sequence, 2, size)
                    rate = ring_rate(size, domain, inside, outside)
                else:
                    ccr = expert_all_to_all_ccr(ffn_width, 2, size)
                    rate = exchange_rate(size, domain, inside, outside)
                share = float(efficiency_without_overlap(float(ccr), ridge_point(peak, rate)))
                left.append(share)
                values[f"{axis.lower()}_{domain}_{size}"] = Named(share)
            name = f"{axis}, {domain} in a domain"
            lines.append(line(name, map(float, SIZES), left, len(lines)))
    return Curves(
        x=Axis(label="ranks of the group", scale="log2", spec=",.0f"),
        y=Axis(label="of the peak, nothing hidden", low=0.0, high=1.0, spec=".0%"),
        series=tuple(lines),
        values=values,
    )


@figure("domain-all-reduce")
def domain_all_reduce(
    *,
    chip: str = "gb200-nvl72",
    port: str = "ib-ndr",
    message_bytes: float = 1e9,
    gpus: tuple[int, ...] = (8, 72, 576, 4608),
) -> Table:
    """An all-reduce over whole domains of 8 and of 72, in two levels, with a port for every GPU."""
    check_between("message_bytes", message_bytes, 1, 1e15)
    inside = accelerator(chip).scale_up_bandwidth_bytes_per_s
    outside = link(port).bandwidth_bytes_per_s
    near, far = nccl_tuning().scale_up_latency_s, nccl_tuning().network_latency_s
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {
        "message": Named(message_bytes, "B"),
        "near": Named(near, "s"),
        "far": Named(far, "s"),
    }
    for count in gpus:
        check_between("gpus", count, 2, 10**6)
        nodes = max(1, count // min(DOMAINS))
        sent = float(all_reduce_bytes_sent(count, message_bytes))
        ring = float(nccl_ring_latency(count, nodes, 0.0, near, far)) + sent / ring_rate(
            count, min(DOMAINS), inside, outside
        )
        times = [
            float(
                two_level_all_reduce_time(
                    min(domain, count),
                    max(1, count // domain),
                    message_bytes,
                    near,
                    inside,
                    far,
                    outside,
                )
            )
            for domain in DOMAINS
        ]
        rows.append((count, ring, *times, times[0] / times[1]))
        values |= {
            f"eight_{count}": Named(times[0], "s"),
            f"rack_{count}": Named(times[1], "s"),
            f"faster_{count}": Named(times[0] / times[1]),
        }
    columns = (
        Column(label="GPUs", spec=",d"),
        *headings(
            "a ring per port, 8 in a domain",
            "two levels, 8",
            "two levels, 72",
            unit="s",
            spec="time",
        ),
        Column(label="8 over 72", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
