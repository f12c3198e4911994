"""Machines of the catalog, and a reader's file as an entry of it."""

from __future__ import annotations

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


@pytest.mark.parametrize("chip", ["h100", "h200"])
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
        assert read_rates(row.measured).known["bf16"][0] > 0


def test_an_entry_without_a_public_file_or_a_source_is_refused() -> None:
    assert main(["measured", str(FILES / "measured-h100.json"), "--row", "measured.json"]) == 2
    with pytest.raises(InputError):
        read_machines(load.content("machines.toml"), {})
