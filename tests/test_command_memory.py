"""figgen memory: the papers' numbers from the command line, and one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from figgen.__main__ import main
from figgen.models.memory.memory_lines import PARTS
from tests.arguments import without

Said = Callable[..., str]
GPT_3 = ("--model", "gpt-3-175b", "--nodes", "8", "--gpus-per-node", "8", "--tp", "8", "--pp", "8")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> str:
        assert main(("memory", *arguments)) == 0
        return capsys.readouterr().out

    return run


def test_gpt_3_stages_hold_what_the_formula_catalogue_says(said: Said) -> None:
    answer = json.loads(
        said(*GPT_3, "--json", "--recompute", "selective", "--dropout", "--microbatches", "32")
    )
    assert answer["world_size"] == 64
    assert (answer["tp"], answer["dp"], answer["pp"]) == (8, 1, 8)
    held = [rank["bytes"]["activations"] for rank in answer["ranks"]]
    # 12 layers of 34·s·b·h/t bytes and a microbatch fewer in flight at every stage.
    assert held[1:7] == [in_flight * 1_283_457_024 for in_flight in range(7, 1, -1)]
    assert [rank["in_flight"] for rank in answer["ranks"]] == list(range(8, 0, -1))
    for rank in answer["ranks"]:
        assert list(rank["bytes"]) == list(PARTS)
        assert sum(rank["bytes"].values()) == pytest.approx(rank["total_bytes"])


def test_llama_3_8b_costs_18_bytes_a_parameter_on_one_gpu_and_an_eighth_of_16_on_eight(
    said: Said,
) -> None:
    common = ("--model", "llama-3-8b", "--nodes", "1", "--reserve", "0 GB", "--json")
    parameters = 8_030_261_248
    for gpus, options, per_parameter in (
        ("1", (), 18),
        ("8", ("--zero", "3", "--recipe", "zero16"), 2),
        ("8", ("--zero", "1"), 6 + 12 / 8),
    ):
        answer = json.loads(said(*common, "--gpus-per-node", gpus, *options))
        (rank,) = answer["ranks"]
        state = sum(rank["bytes"][part] for part in ("weights", "gradients", "optimizer"))
        assert state == per_parameter * parameters
        assert "contexts" not in [name for _, name, _ in rank["lines"]]


def test_text_begins_with_whether_the_fullest_rank_fits(said: Said) -> None:
    lines = said(*GPT_3, "--zero", "0", "--accelerator", "a100-sxm-80gb").splitlines()
    assert lines[0].startswith("GPT-3 175B on 64 × NVIDIA A100 SXM4 80GB ")
    assert " fit (chance " in lines[0] or "fits (chance " in lines[0]
    assert "pipeline rank 0" in lines[0]
    assert ("are free." in lines[0]) != ("enough" in lines[0] or "It would fit with" in lines[0])
    assert lines[1].startswith("gpt-3-175b on 64 GPUs: tp=8 cp=1 dp=1 pp=8")
    assert lines[3].split()[0] == "rank"
    assert len(lines) == 3 + 1 + 8
    totals = [float(line.split()[-1]) for line in lines[4:]]
    assert f"{max(totals):.1f} GB" in lines[0]


def test_memory_needs_no_number_format_that_the_accelerator_multiplies(said: Said) -> None:
    small = ("--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8", "--json")
    assert (
        json.loads(said(*small, "--accelerator", "v100-sxm2-32gb"))["capacity_bytes"]
        == 31.73 * 2**30
    )


def test_verdict_follows_the_capacity(said: Said) -> None:
    small = ("--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8", "--sequence", "2048")
    assert "are free." in said(*small, "--accelerator", "h100-sxm-80gb").splitlines()[0]
    assert json.loads(said(*small, "--json"))["capacity_bytes"] == 85_017_493_504, "an H100"
    whole = ("--model", "llama-3-70b", "--nodes", "1", "--gpus-per-node", "8", "--json")
    assert json.loads(said(*whole, "--accelerator", "h100-sxm-80gb"))["fits"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "gpt-4"), "unknown model 'gpt-4'"),
        (("--recipe", "mcore16"), "did you mean mcore18"),
        (("--tp", "3"), "did you mean"),
        (("--pp", "64"), "layers of the model: expected at least 62"),
        (("--schedule", "1f2b"), "did you mean 1f1b"),
        (("--recompute", "some"), "unknown module to recompute 'some'"),
        (("--activations", "fp9"), "unknown format of activations 'fp9'"),
        (("--accelerator", "h1000"), "unknown accelerator 'h1000'"),
        (("--reserve", "4 apples"), "apples"),
        (("--zero", "4"), "zero_stage: expected a whole number from 0 to 3, got 4"),
        (("--nodes", "x"), "nodes: expected a whole number"),
        (("--sequence", "long"), "sequence: expected a whole number"),
        (("--schedule", "dualpipe", "--pp", "4", "--microbatches", "5"), "dualpipe"),
        (("--microbatches", "0"), "microbatches: expected a whole number from 1 to 65,536, got 0"),
        (("--sequence", "-1"), "sequence: expected a whole number from 1 to 10,000,000, got -1"),
        (("--sequence", "1" + "0" * 400), "sequence: expected a whole number from 1 to"),
    ],
)
def test_bad_input_is_one_line_and_status_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    given = ("--model", "llama-3-8b", "--nodes", "8", "--gpus-per-node", "8")
    assert main(("memory", *without(given, arguments), *arguments)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("figgen: ")
    assert error.count("\n") == 1


def test_what_nothing_says_is_asked_for_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--nodes", "1", "--gpus-per-node", "8"]) == 2
    assert capsys.readouterr().err == "figgen: model: expected a value; it has no default\n"


@pytest.mark.parametrize(("accelerator", "gpus"), [("h100-sxm-80gb", 8), ("gb200-nvl72", 72)])
def test_a_node_has_a_whole_scale_up_domain_unless_it_is_said(
    said: Said, accelerator: str, gpus: int
) -> None:
    answer = json.loads(
        said("--model", "llama-3-70b", "--nodes", "2", "--accelerator", accelerator, "--json")
    )
    assert answer["world_size"] == 2 * gpus
