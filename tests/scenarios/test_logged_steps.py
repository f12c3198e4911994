"""Steps that readers measured, and a log as an entry of their catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.scenarios.evidence.logged_steps import logged_steps, read_logged_steps

ADDRESS = "https://github.com/pytorch/torchtitan/pull/1690"
# From there: local batch 2, FSDP 8, full recomputation, compiled.
LOG = (
    "[rank7]:[titan] 2025-09-11 15:23:55,616 - root - INFO - step: 50  loss:  7.1291  grad_norm:  "
    "8.3760  memory: 81.85GiB(86.17%)  tps: 1,874  tflops: 389.87  mfu: 39.42%\n"
)
JOB = (
    *("--model", "qwen-3-32b", "--accelerator", "h100-hbm2e-96gb", "--nodes", "1"),
    *("--gpus-per-node", "8", "--zero", "3", "--microbatch-size", "2", "--global-batch", "16"),
    *("--sequence", "4096", "--recompute", "full", "--software", "torchtitan"),
)


def row(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Return what the command prints for the two files."""
    assert main(["verdict", *words]) == 0
    _, entry, source = capsys.readouterr().out.split("# figgen/catalog/")
    return entry.partition("\n")[2], source.partition("\n")[2]


def test_a_log_becomes_the_entry_that_the_catalog_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG, "utf-8")
    entry, source = row(capsys, *JOB, "--log", str(log), "--row", ADDRESS)
    name = entry.split("[")[1].split("]")[0]
    (read,) = read_logged_steps(entry, {name: "A log"})
    (known,) = (one for one in logged_steps() if one.title == read.title)
    assert (read.asked, read.step_time_s, read.steps) == (known.asked, known.step_time_s, 1)
    assert read.step_time_s == pytest.approx(2 * 4096 / 1874, rel=1e-6)
    assert read.peak_memory_bytes == pytest.approx(81.85 * 2**30)
    assert ADDRESS in source


def test_a_number_becomes_an_entry_without_steps(capsys: pytest.CaptureFixture[str]) -> None:
    entry, _ = row(capsys, *JOB, "--step-time", "4.4 s", "--row", ADDRESS)
    name = entry.split("[")[1].split("]")[0]
    (read,) = read_logged_steps(entry, {name: "A number"})
    assert (read.step_time_s, read.steps, read.peak_memory_bytes) == (pytest.approx(4.4), 0, None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('software = "torchtitan"', 'softwere = "torchtitan"', "unknown key"),
        ('step_time = "4400000 µs"', 'step_time = "4400000 B"', "step_time"),
        ("tp = 1", "tp = 3", "tp"),
    ],
)
def test_a_fault_of_an_entry_has_its_line(
    old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, _ = row(capsys, *JOB, "--step-time", "4.4 s", "--row", ADDRESS)
    entry = entry.replace("\nnodes = 1\n", "\nnodes = 1\ntp = 1\n")
    assert old in entry
    with pytest.raises(InputError, match=rf"logged-steps\.toml:\d+: .*{said}"):
        read_logged_steps(entry.replace(old, new), {entry.split("[")[1].split("]")[0]: "A log"})


def test_what_is_private_or_unknown_to_the_catalog_is_refused() -> None:
    assert main(["verdict", *JOB, "--step-time", "4.4 s", "--row", "train.log"]) == 2
    own = [
        "layers=8,hidden=1024,heads=8,ffn=4096,vocab=32000" if w == "qwen-3-32b" else w for w in JOB
    ]
    assert main(["verdict", *own, "--step-time", "4.4 s", "--row", ADDRESS]) == 2
