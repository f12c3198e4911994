"""A text with several documents or commands is read as one job, and others are noted."""

from __future__ import annotations

import pytest

from tests.taking.jobs import take

SMALL = "base_model: NousResearch/Llama-2-7b-hf\nmicro_batch_size: 4\nsequence_len: 4096\n"
LARGE = "base_model: NousResearch/Llama-2-70b-hf\nmicro_batch_size: 1\n"
TRAIN = "torchrun --nproc_per_node 8 train.py --per_device_train_batch_size"


@pytest.mark.parametrize(
    ("text", "size", "note"),
    [
        (f"{SMALL}---\n{LARGE}", 4, "2 jobs (model_name"),
        (f"---\n{LARGE}---\n{SMALL}...\n", 4, "reading the second of its documents"),
        (
            '{"train_micro_batch_size_per_gpu": 2}\n{"train_micro_batch_size_per_gpu": 1}',
            2,
            "2 jobs (microbatch_size 2 and 1)",
        ),
        (
            f"{TRAIN} 2 --model_name_or_path Qwen/Qwen3-8B\n"
            f"{TRAIN} 1 --model_name_or_path Qwen/Qwen3-32B\n{TRAIN} 3",
            2,
            "3 jobs (microbatch_size 2 and 1, microbatch_size 2 and 3)",
        ),
    ],
)
def test_the_job_with_the_most_settings_is_read_and_others_are_noted(
    text: str, size: int, note: str
) -> None:
    job = take(text)
    assert job.taken["microbatch_size"] == size
    assert any(note in one for one in job.notes)


def test_documents_that_complete_each_other_are_one_job() -> None:
    machine = "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\n"
    trainer = "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\n"
    job = take(f"{machine}---\n{trainer}")
    assert (job.taken["nodes"], job.taken["model"]) == (2, "qwen-3-8b")
    assert not any("jobs" in note for note in job.notes)


def test_commands_that_only_prepare_the_job_are_no_other_job() -> None:
    job = take(
        "srun --nodes=1 python tools/convert.py --model-type GPT\n"
        "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4 "
        "--micro-batch-size 1 --bf16"
    )
    assert (job.taken["nodes"], job.taken["tp"]) == (4, 4)
    assert not any("jobs" in note for note in job.notes)


def test_a_text_after_a_closing_brace_is_noted() -> None:
    job = take('{"train_micro_batch_size_per_gpu": 2} and more')
    assert "nothing after the closing brace is read: 'and more'" in job.notes
