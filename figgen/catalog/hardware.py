"""Accelerators and links as in datasheets, with dense peaks and bandwidths per direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.entries.entry import CatalogEntry
from figgen.entries.read import read_entries, referred
from figgen.entries.schema import Value, choice, count, quantity, text
from figgen.errors import InputError

DTYPES = ("bf16", "fp16", "fp8", "fp4", "tf32")

_BANDWIDTH = ("1 GB/s", "2 TB/s")
_LATENCY = ("100 ns", "100 µs")
_PEAK = ("10 TFLOP/s", "60 PFLOP/s")
_MEMORY = ("8 GB", "1 TB")

LINK_KEYS = {
    "title": text(required=True),
    "kind": choice("scale-up", "scale-out", "host", required=True),
    "bandwidth": quantity("B/s", *_BANDWIDTH, required=True),
    "per": choice("GPU", "port", "link", "chip", "slot", "node", "superchip", required=True),
    "lanes": count(1, 64),
    "lane_bandwidth": quantity("B/s", *_BANDWIDTH),
    "peer_bandwidth": quantity("B/s", *_BANDWIDTH),
    "port_rate": quantity("B/s", *_BANDWIDTH),
    "achieved_bandwidth": quantity("B/s", *_BANDWIDTH),
    "vendor_chip_bandwidth": quantity("B/s", *_BANDWIDTH),
    "latency": quantity("s", *_LATENCY),
    "latency_cross_leaf": quantity("s", *_LATENCY),
    "step_latency": quantity("s", *_LATENCY),
    "message_gap": quantity("s", *_LATENCY),
}

ACCELERATOR_KEYS = {
    "title": text(required=True),
    "vendor": text(required=True),
    "year": count(2015, 2030, required=True),
    "hbm_capacity": quantity("B", *_MEMORY, required=True),
    "hbm_package": quantity("B", *_MEMORY),
    "hbm_reported": quantity("B", *_MEMORY),
    "hbm_bandwidth": quantity("B/s", "200 GB/s", "30 TB/s", required=True),
    **{dtype: quantity("FLOP/s", *_PEAK) for dtype in DTYPES},
    **{f"sparse_{dtype}": quantity("FLOP/s", *_PEAK) for dtype in DTYPES},
    "measured_bf16": quantity("FLOP/s", *_PEAK),
    "measured_fp8": quantity("FLOP/s", *_PEAK),
    "scale_up": text(required=True),
    "scale_up_ports": count(1, 64),
    "scale_up_domain": count(1, 100_000, required=True),
    "host_gpus": count(1, 64),
    "topology": text(required=True),
    "tdp": quantity("W", "50 W", "3 kW"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link between accelerators or nodes, in B/s and s.

    `bandwidth` is that of one direction of one `per` (a GPU, a port, a torus link …),
    `peer_bandwidth` what one peer of a mesh gets. `achieved_bandwidth` and the latencies are
    measured for a bare message. `step_latency` is that of a ring's step on links that NCCL does not
    use, and `message_gap` the time that each further message adds if many are posted at once.
    """

    name: str
    title: str
    kind: str
    per: str
    bandwidth: Value
    latency: Value | None
    latency_cross_leaf: Value | None
    step_latency: Value | None
    message_gap: Value | None
    peer_bandwidth: Value | None
    achieved_bandwidth: Value | None
    vendor_chip_bandwidth: Value | None
    lanes: int | None
    source: str
    note: str
    facts: tuple[tuple[str, Value], ...]

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bandwidth of one direction, B/s."""
        return self.bandwidth.value

    @property
    def short_title(self) -> str:
        """`NVLink 4` for `NVLink 4 (H100/H200)`, `NDR` for `InfiniBand NDR 4x port`."""
        return self.title.removeprefix("InfiniBand ").partition(" 4x")[0].partition(" (")[0]

    @property
    def both_directions_bytes_per_s(self) -> float:
        """The number that vendors print, B/s, which is shown in a footnote and never used."""
        return 2 * self.bandwidth.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """An accelerator. Peaks are dense, by the type of the multiplied numbers.

    `sparse_footnote` has the 2:4-sparse rates that datasheets print; nothing computes with them.
    `hbm_capacity` is the vendor's number, `hbm_reported` what PyTorch reports, `hbm_package` what
    is soldered on. `host_gpus` are those of one host (a tray of a rack, a machine of a pod) if
    several hosts share the scale-up domain.
    """

    name: str
    title: str
    vendor: str
    year: int
    hbm_capacity: Value
    hbm_bandwidth: Value
    bf16: Value | None
    fp16: Value | None
    fp8: Value | None
    fp4: Value | None
    tf32: Value | None
    sparse_footnote: tuple[tuple[str, Value], ...]
    measured_bf16: Value | None
    measured_fp8: Value | None
    hbm_package: Value | None
    hbm_reported: Value | None
    tdp: Value | None
    scale_up: Link
    scale_up_ports: int
    scale_up_domain: int
    host_gpus: int | None
    topology: str
    source: str
    note: str
    facts: tuple[tuple[str, Value], ...]

    @property
    def short_title(self) -> str:
        """`H100` for `NVIDIA H100 SXM5 80GB`, `MI300X` for `AMD Instinct MI300X`."""
        return self.title.removeprefix(f"{self.vendor} ").removeprefix("Instinct ").split()[0]

    @property
    def peaks(self) -> dict[str, float]:
        """Dense matrix peaks by type, FLOP/s."""
        known = zip(DTYPES, (self.bf16, self.fp16, self.fp8, self.fp4, self.tf32), strict=True)
        return {dtype: peak.value for dtype, peak in known if peak is not None}

    def peak_flops_per_s(self, dtype: str = "bf16") -> float:
        """Return the dense matrix peak for `dtype`, FLOP/s. Raises InputError if there is none."""
        if dtype not in self.peaks:
            raise InputError(
                f"{self.name} has no dense {dtype} matrix peak",
                expected=" or ".join(self.peaks),
                got=dtype,
            )
        return self.peaks[dtype]

    @property
    def hbm_bytes(self) -> float:
        """Memory as the vendor prints it, in bytes."""
        return self.hbm_capacity.value

    @property
    def capacity_bytes(self) -> float:
        """The device's capacity in bytes as PyTorch reports it, which decides whether a step fits.

        It is `total_memory` of `torch.cuda.get_device_properties`, about half a percent less than
        nvidia-smi's total, and the "total capacity" of an out-of-memory message. If no report is
        known, it is the vendor's number. That is a lower bound, because vendors print GB and most
        mean GiB.
        """
        return (self.hbm_reported or self.hbm_capacity).value

    @property
    def hbm_bandwidth_bytes_per_s(self) -> float:
        """Peak memory bandwidth, B/s."""
        return self.hbm_bandwidth.value

    @property
    def scale_up_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth into the scale-up domain over all links together, one direction, B/s."""
        return self.scale_up_ports * self.scale_up.bandwidth.value


def read_links(content: str, sources: Mapping[str, str]) -> dict[str, Link]:
    """Return the links of `links.toml`. Raises InputError for any mistake in it."""
    entries = read_entries("links.toml", content, LINK_KEYS, sources)
    return {name: link_of(entry) for name, entry in entries.items()}


def link_of(entry: CatalogEntry) -> Link:
    """Return a link, whose lanes or port rate must add up to the bandwidth of one direction."""
    bandwidth, lane = entry.values["bandwidth"], entry.values.get("lane_bandwidth")
    wanted = entry.plain("port_rate")
    if lane is not None:
        wanted = entry.whole("lanes") * lane.value
    if wanted is not None and abs(bandwidth.value / wanted - 1) > 0.01:
        raise entry.place.at("bandwidth").fault(
            "not the sum of its lanes in one direction",
            expected=f"{wanted / 1e9:g} GB/s",
            got=bandwidth.printed,
        )
    return entry.fill(Link)


def read_accelerators(
    file: str, content: str, sources: Mapping[str, str], links: Mapping[str, Link]
) -> dict[str, Accelerator]:
    """Return the accelerators of one file. Raises InputError for any mistake in it."""
    entries = read_entries(file, content, ACCELERATOR_KEYS, sources)
    return {name: accelerator_of(entry, links) for name, entry in entries.items()}


def accelerator_of(entry: CatalogEntry, links: Mapping[str, Link]) -> Accelerator:
    """Return an accelerator with its scale-up link. Raises InputError if it has no dense peak."""
    _check_dense(entry)
    domain, host = entry.whole("scale_up_domain"), entry.whole("host_gpus", 1)
    if domain % host:
        raise entry.place.at("host_gpus").fault(
            "hosts don't fill the domain", expected=f"a divisor of {domain}", got=host
        )
    return entry.fill(
        Accelerator,
        scale_up=referred(entry, "scale_up", links, "links.toml"),
        scale_up_ports=entry.whole("scale_up_ports", 1),
        sparse_footnote=tuple(
            (dtype, entry.values[f"sparse_{dtype}"])
            for dtype in DTYPES
            if f"sparse_{dtype}" in entry.values
        ),
    )


def _check_dense(entry: CatalogEntry) -> None:
    """Raise InputError for an entry without a peak, or with a dense peak up to its sparse one."""
    if not any(dtype in entry.values for dtype in DTYPES):
        raise entry.place.fault("no dense peak", expected=" or ".join(DTYPES))
    for dtype in DTYPES:
        dense, sparse = entry.plain(dtype), entry.plain(f"sparse_{dtype}")
        if dense is not None and sparse is not None and sparse < 1.2 * dense:
            raise entry.place.at(dtype).fault(
                "not a dense peak: the sparse footnote is no higher",
                expected=f"about half of {sparse:g} FLOP/s",
                got=entry.values[dtype].printed,
            )
