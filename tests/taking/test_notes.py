"""What can't be read, contradicts itself or isn't used is named in a note or refused."""

from __future__ import annotations

import pytest
import yaml

from figgen.errors import InputError
from figgen.scenarios.taking.options import options_of
from tests.taking.jobs import take


def test_unknown_variables_are_asked_for_and_answered() -> None:
    text = "torchrun --nnodes $NUM --nproc-per-node ${PER} x.py --tensor-model-parallel-size $1"
    job = take(text)
    assert job.asked == ["NUM", "PER", "1"]
    with pytest.raises(InputError, match="--set NUM=… --set PER=…"):
        options_of(job)
    answered = take(text, NUM="4", PER="8")
    assert (answered.taken["nodes"], answered.taken["gpus_per_node"]) == (4, 8)
    assert answered.asked == ["1"]
    counted = take("N=$(scontrol show hostnames | wc -l)\ntorchrun --nnodes $N x.py --tp-size 2")
    assert counted.asked == ["N"]
    sums = "torchrun --nnodes $((WORLD / 8)) --nproc-per-node 8 x.py --tensor-model-parallel-size 8"
    assert take(sums).asked == ["WORLD"]
    assert take(sums, WORLD="64").taken["nodes"] == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x --tensor-model-parallel-size true --bf16", "parallel-size: expected a whole number"),
        ("x --tensor-model-parallel-size --bf16", "parallel-size: expected a whole number"),
        (
            "x --tensor-model-parallel-size `id` --bf16",
            "parallel-size: expected a value, got a shell",
        ),
        ("TP=-inf\nx --tensor-model-parallel-size $TP", "parallel-size: expected a whole number"),
        ("torchrun --nnodes 0 x --tensor-model-parallel-size 2", "nodes: expected a whole number"),
        ("torchrun --nnodes () x --tensor-model-parallel-size 2", "nnodes: expected a whole"),
        (
            "init_device_mesh('cuda', (0, 2), mesh_dim_names=('dp', 'tp'))",
            "mesh.dp: expected a whole number from 1 on, got 0",
        ),
        ("TP=-1\nx --tensor-model-parallel-size $TP", "from 1 to 1,000,000,000, got '-1'"),
        ("#SBATCH --nodes=1e-400\nsrun x --tensor-model-parallel-size 2", "got '1e-400'"),
    ],
)
def test_a_size_without_a_number_is_not_passed_over(text: str, said: str) -> None:
    job = take(text)
    assert any(said in note for note in job.notes), job.notes
    assert job.taken.keys() <= {"tp", "order", "dtype"}


@pytest.mark.parametrize(
    ("text", "size", "said"),
    [
        ("x --tensor-model-parallel-size 1 TB", 1, "expected one number, got '1 TB'; using 1"),
        ("L=(4 5)\nx --tensor-model-parallel-size ${L[@]}", 4, "expected one number, got '4 5'"),
        ("x --tensor-model-parallel-size 1 GB/s", 1, "expected one number, got '1 GB/s'"),
        ("TP=4 5\nx --tensor-model-parallel-size $TP", 4, "TP=4 5: a value with a space needs"),
    ],
)
def test_what_follows_a_number_is_named(text: str, size: int, said: str) -> None:
    job = take(text)
    assert any(said in note for note in job.notes), job.notes
    assert job.taken["tp"] == size


def test_what_stands_behind_a_list_of_yaml_is_refused_as_a_library_refuses_it() -> None:
    text = "parallelism:\n  tp: [1]*9\n  pp: 2"
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(text)
    with pytest.raises(InputError, match="expected nothing behind a closing bracket"):
        take(text)


def test_a_file_behind_a_number_is_an_argument_of_its_own() -> None:
    assert take("x --tensor-model-parallel-size 4 run/train.yaml").notes == []


def test_an_option_given_twice_is_named() -> None:
    job = take(
        "torchrun --nnodes 1 --nproc-per-node 8 x.py --micro-batch-size 1 "
        "--tensor-model-parallel-size 2 --micro-batch-size 4"
    )
    assert job.taken["microbatch_size"] == 4
    assert any("--micro-batch-size is given twice, 1 and 4" in note for note in job.notes)
    other = take(
        "TP=2\nif x; then\nTP=4\nfi\ntorchrun --nproc-per-node 8 x.py "
        "--tensor-model-parallel-size $TP"
    )
    assert any("TP is set more than once (2, 4)" in note for note in other.notes)


@pytest.mark.parametrize("end", ["wc -l)", "wc -l || true)"])
def test_a_script_that_counts_nvlinks_is_read_as_on_a_machine_that_has_some(end: str) -> None:
    """THUDM/slime's scripts begin with this guard; no machine's links are asked for."""
    job = take(
        f"NVLINK_COUNT=$(nvidia-smi topo -m 2>/dev/null | grep -o 'NV[0-9][0-9]*' | {end}\n"
        'if [ "$NVLINK_COUNT" -gt 0 ]; then\n    HAS_NVLINK=1\nelse\n    HAS_NVLINK=0\nfi\n'
        'echo "HAS_NVLINK: $HAS_NVLINK (detected $NVLINK_COUNT NVLink references)"\n'
        "if [ $HAS_NVLINK -eq 1 ]; then\nTP=8\nelse\nTP=1\nfi\n"
        "torchrun --nnodes 1 --nproc-per-node 8 x.py --tensor-model-parallel-size $TP\n"
    )
    assert job.asked == []
    assert job.taken["tp"] == 8
    said = [note for note in job.notes if "NV" in note or "more than once" in note]
    assert said == ["the script counts NVLinks; assuming that there are some"]


def test_what_is_left_is_named_and_what_may_matter_is_not_called_irrelevant() -> None:
    job = take(
        "torchrun --nproc-per-node 8 x.py --tensor-model-parallel-size 2 --lr 1e-4 "
        "--pipline-model-parallel-size 4 --moe-expert-capacity-factor 2"
    )
    assert "--lr" in job.left
    assert "--lr" not in job.unsure
    assert {"--pipline-model-parallel-size", "--moe-expert-capacity-factor"} <= set(job.unsure)
    assert any("did you mean --pipeline-model-parallel-size?" in note for note in job.notes)


def test_sizes_that_do_not_fit_are_told() -> None:
    job = take("torchrun --nnodes 1 --nproc-per-node 8 x.py --tensor-model-parallel-size 3")
    assert any("8 GPUs cannot be divided" in note for note in job.notes)
    bad = take("torchrun --nproc-per-node 8 x.py --tensor-model-parallel-size four")
    assert any("expected a whole number" in note and "four" in note for note in bad.notes)


@pytest.mark.parametrize("text", ["", "hello", "{}", "[1]", "a: b: c", "{", "  \n"])
def test_a_text_about_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        take(text)
