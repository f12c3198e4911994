"""measure.py and the reader of its file: counts agree with the formulas, invalid files
are refused."""

from __future__ import annotations

import ast
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.catalog.measured_file import FORMAT, TABLES, VERSION, read_measured
from figgen.errors import InputError
from figgen.formulas.compute_and_roofline import attention_core_flops
from figgen.models.shape.transformer import matmul_parameters, parameter_counts
from figgen.scenarios.runs.machine_answer import machine_sentence
from figgen.scenarios.runs.machine_rates import rates_of
from figgen.scenarios.runs.own_rates import (
    attention_rate,
    chip_of,
    layer_rate,
    rates,
    sheet_of,
)
from tests.models.jobs import sized

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "docs" / "tools" / "measure" / "measure.py"
SAMPLE = Path(__file__).with_name("measured_cpu.json")
COUNTS = runpy.run_path(str(PROGRAM))
MODEL_SHAPE = sized(4, 2048, 16, 4, 128, 5632, 32000, 2048)
LAYER = {"hidden": 4096, "ffn": 14336, "heads": 32, "sequence": 8192, "batch": 1}


def h100(**tables: list[dict[str, Any]]) -> str:
    """Return a file of eight H100 with these tables."""
    machine = {
        "device": "NVIDIA H100 80GB HBM3", "kind": "cuda", "memory_bytes": 85_520_809_984,
        "ranks": 8, "nodes": 1, "torch": "2.9.0", "runtime": "12.8", "date": "2026-11-22",
    }  # fmt: skip
    return json.dumps({"format": FORMAT, "version": VERSION, "machine": machine, **tables})


PRODUCT = {
    "format": "bf16",
    "side": "forward",
    "m": 8192,
    "n": 8192,
    "k": 8192,
    "seconds": 2 * 8192**3 / 700e12,
}
REDUCE = {
    "collective": "all_reduce", "ranks": 8, "nodes": 1, "message_bytes": 2**30,
    "seconds": 2 * 7 / 8 * 2**30 / 360e9,
}  # fmt: skip


def test_program_needs_nothing_but_python_until_it_measures() -> None:
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names | {"__future__"}
    assert (COUNTS["FORMAT"], COUNTS["VERSION"]) == (FORMAT, VERSION)


def test_program_counts_as_the_guide_does() -> None:
    shape = sized(1, 4096, 32, 32, 128, 14336, 1, 8192)
    weights = matmul_parameters(shape) - 4096
    core = attention_core_flops(sequence_length=8192, microbatch_size=1, hidden=4096)
    assert COUNTS["attention_flops"](1, 32, 128, 8192) == core / 2
    assert COUNTS["layer_flops"](**LAYER) == 2 * weights * 8192 + core / 2
    assert COUNTS["layer_parameters"](4096, 14336) == weights + 2 * 4096
    assert COUNTS["bus_factor"]("all_reduce", 8) == 1.75
    assert COUNTS["bus_factor"]("all_to_all", 8) == 0.875
    assert COUNTS["kernel_bytes"]("add", 10, 2) == 60


def test_reader_counts_as_the_program_does() -> None:
    layer = LAYER | {"batch": 3}
    flops = COUNTS["layer_flops"](**layer)
    assert layer_rate(layer | {"both_s": 7e15}) == pytest.approx(3 * flops / 7e15)
    assert COUNTS["model_parameters"](COUNTS["MODEL"]) == parameter_counts(MODEL_SHAPE).total
    row = {"batch": 4, "heads": 32, "head_dim": 64, "sequence": 4096, "seconds": 1.0}
    once = COUNTS["attention_flops"](4, 32, 64, 4096)
    assert attention_rate(row | {"pass": "forward"}) == once
    assert attention_rate(row | {"pass": "backward"}) == 2.5 * once


def test_a_file_of_known_rates_gives_them_back_beside_the_data_sheet() -> None:
    layer = LAYER | {"format": "bf16", "forward_s": 0.001}
    layer["both_s"] = 3 * COUNTS["layer_flops"](**LAYER) / 500e12
    kernel = {"kernel": "copy", "bytes": 2.5e9, "seconds": 1e-3}
    small = REDUCE | {"message_bytes": 1024, "seconds": 1e-9}
    text = h100(products=[PRODUCT], layers=[layer], kernels=[kernel], collectives=[REDUCE, small])
    file = read_measured(text)
    assert chip_of(file) == "h100-sxm-80gb"
    chip = catalog.accelerator("h100-sxm-80gb")
    found = {rate.name: rate for rate in rates(file, chip)}
    assert found["matmuls in BF16"].value == pytest.approx(700e12)
    assert found["matmuls in BF16"].share == pytest.approx(700 / 989.4)
    assert found["memory, copy"].share == pytest.approx(2.5 / 3.35)
    assert found["all-reduce over 8 ranks"].share == pytest.approx(360 / 450)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.99, "It's as fast as another of its kind: 0.99 to 0.99 times."),
        (0.5, "BF16 (0.50 times)"),
    ],
)
def test_a_machine_is_held_against_another_of_its_kind(share: float, said: str) -> None:
    sheet = sheet_of(catalog.accelerator("h100-sxm-80gb"))
    sentence = machine_sentence("mine", {"bf16": (share * sheet.other["bf16"][0], 0.0)}, sheet)
    assert sentence.startswith(f"mine runs matmuls in BF16 at {share * 708.388:.0f}\u00a0TFLOP/s (")
    assert said in sentence


@pytest.mark.parametrize(
    ("kind", "device", "chip"),
    [
        ("cuda", "NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("cuda", "NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("cuda", "NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("cuda", "NVIDIA GeForce RTX 4080", None),
        ("cpu", "a host of H100", None),
        ("mps", "a Mac, and no H100", None),
    ],
)
def test_a_chip_is_that_of_the_catalog_or_none(kind: str, device: str, chip: str | None) -> None:
    content = json.loads(h100(products=[PRODUCT]))
    content["machine"] |= {"kind": kind, "device": device}
    assert chip_of(read_measured(json.dumps(content))) == chip


def test_the_best_rate_of_each_kind_counts_and_of_links_that_of_long_messages() -> None:
    once = COUNTS["attention_flops"](1, 32, 128, 8192)
    size = {
        "format": "bf16",
        "mask": "causal",
        "batch": 1,
        "heads": 32,
        "head_dim": 128,
        "sequence": 8192,
    }
    attention = [
        size | {"pass": way, "seconds": work / rate}
        for way, work, best in (("forward", once, (6e14, 5e14)), ("backward", 2.5 * once, (7e14,)))
        for rate in best
    ]
    fp8 = PRODUCT | {"format": "fp8", "seconds": 2 * 8192**3 / 1.2e15}
    slower = PRODUCT | {"seconds": 2 * PRODUCT["seconds"]}
    shuffle = REDUCE | {"collective": "all_to_all", "seconds": 7 / 8 * 2**30 / 200e9}
    gather = REDUCE | {"collective": "all_gather", "seconds": 7 / 8 * 2**30 / 300e9}
    # At 16 MiB on; a shorter one that looks faster is not asked.
    least = gather | {"message_bytes": 2**24, "seconds": 7 / 8 * 2**24 / 320e9}
    short = gather | {"message_bytes": 2**24 - 8, "seconds": 7 / 8 * 2**24 / 900e9}
    # Where all are short, the longest; one rank alone sends nothing.
    brief = REDUCE | {"message_bytes": 2**20, "seconds": 2 * 7 / 8 * 2**20 / 50e9}
    briefer = brief | {"message_bytes": 2**19}
    alone = brief | {"ranks": 1, "message_bytes": 2**30, "seconds": 1e-9}
    kernels = [{"kernel": "copy", "bytes": 2.5e9, "seconds": 1e-3}]
    file = read_measured(
        h100(
            products=[slower, PRODUCT, fp8],
            attention=attention,
            kernels=kernels,
            collectives=[shuffle, gather, least, short, brief, briefer, alone],
        )
    )
    chip = catalog.accelerator("h100-sxm-80gb")
    wanted = {
        "matmuls in BF16": (700e12, 989.4e12), "matmuls in FP8": (1.2e15, 1978.9e12),
        "attention forward": (6e14, 989.4e12), "attention backward": (7e14, 989.4e12),
        "memory, copy": (2.5e12, 3.35e12), "all-to-all over 8 ranks": (200e9, 450e9),
        "all-gather over 8 ranks": (320e9, 450e9), "all-reduce over 8 ranks": (50e9, 450e9),
    }  # fmt: skip
    found = {rate.name: (rate.value, rate.peak) for rate in rates(file, chip)}
    assert found.keys() == wanted.keys()
    for name, pair in wanted.items():
        assert found[name] == pytest.approx(pair, rel=1e-3), name
    assert {rate.peak for rate in rates(file, None)} == {None}
    assert {rate.share for rate in rates(file, None)} == {None}
    # A sheet's scale-up links are not what messages between nodes run on.
    two = json.loads(h100(collectives=[gather]))
    two["machine"]["nodes"] = 2
    assert [rate.peak for rate in rates(read_measured(json.dumps(two)), chip)] == [None]


def test_a_file_recorded_on_a_cpu_is_read_whole(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(SAMPLE.read_text("utf-8"))
    assert content.keys() == {"format", "version", "machine", *TABLES} - {"steps"}
    file = read_measured(SAMPLE.read_text("utf-8"))
    assert {name: len(rows) for name, rows in file.tables.items()} == {
        name: len(content.get(name, [])) for name in TABLES
    }
    assert chip_of(file) is None
    assert main(["measured", str(SAMPLE)]) == 0
    said = capsys.readouterr().out
    assert "not a chip of the catalog" in said
    assert "all-to-all over 2 ranks" in said
    assert "3.80 times its parts at these rates" in said
    assert "a step of 2 layers, eager, weights in FP32 under autocast" in said
    assert "the host launches a kernel every" in said
    assert "--measured:\nbf16-" in said


def test_a_file_of_the_first_version_is_still_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = SAMPLE.with_name("measured_cpu_version_1.json").read_text("utf-8")
    file = read_measured(text)
    assert file.version == 1
    assert {row["side"] for row in file.tables["products"]} == {"forward"}
    assert {row["mask"] for row in file.tables["attention"]} == {"causal"}
    assert file.tables["training"] == ()
    assert main(["measured", str(SAMPLE.with_name("measured_cpu_version_1.json"))]) == 0
    assert "3.99 times its parts at these rates" in capsys.readouterr().out


def test_backward_matmuls_and_explicit_masks_do_not_change_the_rates_that_tools_take() -> None:
    size = {"format": "bf16", "batch": 1, "heads": 32, "head_dim": 128, "sequence": 8192}
    attention = [size | {"pass": way, "seconds": 1e-3} for way in ("forward", "backward")]
    kernel = {"kernel": "copy", "bytes": 2.5e9, "seconds": 1e-3}
    plain = rates_of(read_measured(h100(products=[PRODUCT], attention=attention, kernels=[kernel])))
    more = rates_of(
        read_measured(
            h100(
                products=[PRODUCT, PRODUCT | {"side": "weight", "seconds": 1.0}],
                attention=attention
                + [row | {"mask": "explicit", "seconds": 1} for row in attention],
                kernels=[kernel, kernel | {"kernel": "strided", "seconds": 1.0}],
            )
        )
    )
    # They are parts of their own, each after its kind.
    assert {part: more.known[part] for part in plain.known} == plain.known
    assert more.known.keys() - plain.known.keys() == {"masked", "strided"}
    assert more.known["strided"] == (2.5e9,)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "measured file"),
        ("{", "JSON of measure.py"),
        ('{"format": "parallelism-computed/measured", "version": 3}', "version.*1 or 2.*3"),
        ('{"format": "parallelism-computed/measured", "version": true}', "version"),
        (h100(products=[PRODUCT | {"seconds": 0}]), r"products\[0\].seconds.*above 0.*0"),
        (h100(products=[PRODUCT | {"format": "bf15"}]), r"products\[0\].format.*bf16"),
        (h100(products=[PRODUCT | {"secs": 1}]), r"secs.*seconds"),
        (h100(products=[{"format": "bf16"}]), r"products\[0\].m: .*missing"),
        (h100(collectives=[REDUCE | {"ranks": 1.5}]), r"ranks.*whole number"),
        (h100(kernels=3), "kernels.*a list"),
        (h100(layers=[True]), r"layers\[0\]"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_measured(text)


def test_command_refuses_what_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "/nowhere.json"]) == 2
    assert "readable" in capsys.readouterr().err
