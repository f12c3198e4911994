"""Machines of the catalog, and a reader's file as an entry of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.catalog import load
from figgen.catalog.machines import machines, read_machines
from figgen.catalog.measured_file import read_measured
from figgen.errors import InputError
from figgen.scenarios.runs.machine_rates import read_rates

FILES = Path(__file__).parents[2] / "figgen" / "catalog"
ORACLE = Path(__file__).parents[1] / "oracles" / "kernel_tables.json"
KERNELS = json.loads(ORACLE.read_text("utf-8"))


@pytest.mark.parametrize("chip", ["h100", "h200", "b200", "a100"])
def test_a_file_becomes_an_entry_with_its_rates_and_its_source(
    chip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, address = str(FILES / f"measured-{chip}.json"), "https://example.org/measured.json"
    assert main(["measured", path, "--row", address]) == 0
    _, entry, source = capsys.readouterr().out.split("# figgen/catalog/")
    sources = {entry.split("[")[1].split("]")[0]: "A measured file"}
    (row,) = read_machines(entry.partition("\n")[2], sources).values()
    file = read_measured(load.content(f"measured-{chip}.json"))
    assert read_rates(row.measured) == read_rates(path)
    assert (row.device, row.torch, row.ranks) == (file.device, file.torch, file.ranks)
    assert address in source
    (known,) = (each for each in machines().values() if each.device == file.device)
    assert known.measured == row.measured


def test_every_machine_has_a_chip_of_the_catalog_and_rates_that_are_read() -> None:
    for row in machines().values():
        assert catalog.accelerator(row.accelerator).vendor in row.device
        known = read_rates(row.measured).known
        assert known["bf16" if "bf16" in known else "fp16"][0] > 0


def times(chip: str, table: str, **wanted: object) -> list[float]:
    """Return the seconds of a file's rows with these values."""
    rows = read_measured(load.content(f"measured-{chip}.json")).tables[table]
    return [row["seconds"] for row in rows if wanted.items() <= row.items()]


def test_matmuls_and_attention_of_a_b200_are_those_that_simumax_prints() -> None:
    for row in KERNELS["simumax"]["matmul"]:
        size = {"m": row["m"], "n": row["n"], "k": row["k"]}
        assert times("b200", "products", **size) == [pytest.approx(row["time_us"] / 1e6, rel=1e-5)]
    for way, passes in (("forward", 2), ("backward", 5)):
        for row in KERNELS["simumax"]["sdp_fwd" if way == "forward" else "sdp_bwd"]:
            heads, length = row["head_num"], row["seq_len"]
            flops = passes * heads * length**2 * (row["qk_head_dim"] + row["v_head_dim"])
            found = times("b200", "attention", heads=heads, sequence=length, **{"pass": way})
            assert found == [pytest.approx(flops / row["tflops"] / 1e12, rel=1e-5)]


def test_operators_of_an_a100_are_those_that_perlmutter_prints() -> None:
    """nn.Linear from h to 3h, h, 4h and back, divided by the tensor-parallel degree; attention is
    not causal, so a causal batch of twice the size does its FLOPs."""
    printed = KERNELS["perlmutter"]
    widths = {"linear1": (1, 3), "linear2": (1, 1), "linear3": (1, 4), "linear4": (4, 1)}
    for name, (inner, outer) in widths.items():
        for row in printed[name]:
            hidden, parts = int(row["dim"]), int(row["mp"])
            n, k = hidden * outer, hidden * inner
            n, k = (n, k // parts) if name == "linear4" else (n // parts, k)
            tokens = int(row["b"] * row["l"])
            expected = pytest.approx(row["F_dur(us)"] / 1e6, rel=1e-5)
            assert expected in times("a100", "products", m=tokens, n=n, k=k)
    for name, kernel, tensors in (("layernorm", "norm", 2), ("res_add", "add", 3)):
        for row in printed[name]:
            moved = 2 * tensors * int(row["b"] * row["l"] * row["dim"])
            expected = pytest.approx(row["F_dur(us)"] / 1e6, rel=1e-5)
            assert expected in times("a100", "kernels", kernel=kernel, bytes=moved)
    (row,) = printed["flash_atten"]
    for way, key in (("forward", "F_dur(us)"), ("backward", "B_dur(us)")):
        wanted = {"batch": 2 * row["b"], "heads": row["h"], "sequence": row["l"], "pass": way}
        assert times("a100", "attention", **wanted) == [pytest.approx(row[key] / 1e6, rel=1e-5)]


def test_an_entry_without_a_public_file_or_a_source_is_refused() -> None:
    assert main(["measured", str(FILES / "measured-h100.json"), "--row", "measured.json"]) == 2
    with pytest.raises(InputError):
        read_machines(load.content("machines.toml"), {})
