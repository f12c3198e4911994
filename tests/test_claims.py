"""Claims of pages about other people's work, compared with that work."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from figgen.catalog import model
from figgen.errors import InputError
from figgen.figures.parameters import ScheduleName
from figgen.figures.pipeline.timelines import simulated
from figgen.models.collectives import bytes_sent_per_rank, trace
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import layer_input_bytes
from figgen.models.memory.fit_probability import SAFE
from figgen.models.pipeline.schedules import build as scheduled
from figgen.models.pipeline.simulate import simulate
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import step_calls
from figgen.registry import build
from figgen.scenarios.evidence.peaks import judged_peaks
from figgen.scenarios.stories.journey import job as journey_job
from figgen.values import compute
from tests.models.jobs import job

DOCS = Path(__file__).parents[1] / "docs"
REFERENCES = tomllib.loads((DOCS / "references.toml").read_text("utf-8"))


def page(name: str) -> str:
    return (DOCS / "guide" / f"{name}.md").read_text("utf-8")


def test_every_stage_of_zero_has_megatrons_option() -> None:
    """docs/user-guide/parallelism-guide.md of Megatron-LM: optim, optim_grads and the third one."""
    rows = re.findall(r"^\| ([0-3])[ ,].*\|$", page("zero-fsdp"), re.M)
    assert rows == ["0", "1", "2", "3"]
    table = re.search(r"\| Stage \| Sharded .*?\n\n", page("zero-fsdp"), re.S)
    assert table
    cells = [line.strip("|").split("|") for line in table[0].strip().splitlines()[2:]]
    assert all(cell.strip() for row in cells for cell in row)
    assert "`--data-parallel-sharding-strategy optim_grads`" in cells[2][-1]
    assert "`optim_grads_params`" in cells[3][-1]


def reduced(parts: list[np.ndarray], how: str, calls: list[str]) -> np.ndarray:
    calls.append(how)
    return np.max(parts, axis=0) if how == "max" else np.sum(parts, axis=0)


def test_a_loss_over_a_split_vocabulary_takes_three_all_reduces() -> None:
    """As in Megatron's cross_entropy.py: the maximum, the correct token's logit, the sum."""
    drawn = np.random.default_rng(7)
    logits, right = drawn.normal(size=(5, 64)), drawn.integers(0, 64, size=5)
    shards, calls = np.split(logits, 4, axis=1), []
    most = reduced([s.max(axis=1) for s in shards], "max", calls)
    mine = [
        np.where(right // 16 == rank, s[np.arange(5), right % 16] - most, 0.0)
        for rank, s in enumerate(shards)
    ]
    wanted = reduced(mine, "sum", calls)
    total = reduced([np.exp(s - most[:, None]).sum(axis=1) for s in shards], "sum", calls)
    whole = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(5), right]
    assert np.log(total) - wanted == pytest.approx(whole)
    assert calls == ["max", "sum", "sum"]
    assert "three numbers per token: the maximum, the target token's logit, and a sum" in page(
        "tensor-parallelism"
    )


SYMMETRIC_KERNELS = """
AllReduce_AGxLL_R AllReduce_AGxLLMC_R AllReduce_RSxTmaLD_AGxTmaST AllReduce_RSxLD_AGxST
AllReduce_RSxLDMC_AGxSTMC AllGather_LL AllGather_LLMC AllGather_TmaST AllGather_ST
AllGather_TmaSTMC AllGather_STMC AllGather_RailRing_LsaSTMC ReduceScatter_LL ReduceScatter_TmaLD
ReduceScatter_LD ReduceScatter_LDMC ReduceScatter_RailA2A_LsaLD ReduceScatter_RailA2A_LsaLDMC
"""
"""`ncclSymkKernelId` of NCCL 2.30.7, src/include/sym_kernels.h."""


def test_nccls_menu_counts_its_kernels_for_symmetric_memory() -> None:
    names = {18: "eighteen", 5: "five", 7: "seven", 6: "six"}
    kernels = SYMMETRIC_KERNELS.split()
    of = {
        kind: sum(name.startswith(kind) for name in kernels)
        for kind in ("AllReduce", "AllGather", "ReduceScatter")
    }
    text = page("all-reduce-algorithms")
    assert f"{names[len(kernels)]} kernels for buffers in symmetric memory" in text
    assert f"{names[of['AllReduce']]} for the all-reduce" in text
    assert f"{names[of['AllGather']]} for the all-gather" in text
    assert f"{names[of['ReduceScatter']]} for the reduce-scatter" in text


def test_who_came_first_is_told_in_the_order_of_the_years() -> None:
    line = next(s for s in page("zero-bubble").splitlines() if "@li2021" in s)
    cited = re.findall(r"\[@(\w+)\]", line)
    years = [int(REFERENCES[key]["year"]) for key in cited]
    assert cited == ["jain2020", "li2021"]
    assert years == sorted(years)


@pytest.mark.parametrize(
    ("figure", "arguments"),
    [("stage-memory", {"stages": 4, "microbatches": 8}), ("sp-memory", {})],
)
def test_gpts_34_bytes_are_refused_for_another_kind_of_layer(
    figure: str, arguments: dict[str, int]
) -> None:
    build(figure, {"model": "gpt-3-175b", **arguments})
    for name in ("llama-3-8b", "mixtral-8x7b"):
        with pytest.raises(InputError, match="GPT"):
            build(figure, {"model": name, **arguments})


def test_a_gpus_share_of_a_message_is_the_input_of_a_layer_that_the_memory_model_keeps() -> None:
    """GPT-3 at TP 8 with sequence parallelism: an eighth of a boundary, 6.29 MB."""
    line = next(s for s in page("pipeline-schedules").splitlines() if "only an eighth of it" in s)
    shown = compute(re.findall(r"\{\{(.*?)\}\}", line)[0])[0].value
    parallel = layout(nodes=1, gpus_per_node=8, tp=8)
    setup = TrainingSetup(
        shape=model("gpt-3-175b").shape, parallel=parallel, microbatches=1, sequence=2048
    )
    assert shown == layer_input_bytes(setup) == 2048 * 12288 * 2 / 8


def test_nodes_that_are_sorted_as_text_cross_their_pods_fourteen_times() -> None:
    """PyTorch issue 191190: ranks follow the names of nodes as strings."""
    found = {}
    for order in (sorted(range(64)), sorted(range(64), key=lambda node: f"node{node}")):
        pods = [node // 16 for node in order]
        found[order[2]] = sum(a != b for a, b in zip(pods, pods[1:] + pods[:1], strict=True))
    assert found == {2: 4, 10: 14}
    assert "14 of the 64 links leave their pod instead of four" in page("placement")


def test_pytorchs_sharded_optimizer_sends_three_halves_of_ddp() -> None:
    """Its reference: DDP runs as well, and each rank broadcasts the parameters that it updated."""
    ranks, share = 8, 1 / 8
    ddp = trace("all-reduce", "ring", ranks)
    broadcasts = [trace("broadcast", "chain", ranks, root=rank) for rank in range(ranks)]
    reduced_bytes = sum(bytes_sent_per_rank(ddp, 1.0))
    spread = sum(sum(bytes_sent_per_rank(one, share)) for one in broadcasts)
    assert (reduced_bytes + spread) / reduced_bytes == pytest.approx(1.5)
    line = next(s for s in page("zero-fsdp").splitlines() if "@pytorch-zero]" in s)
    assert "broadcasts" in line
    assert "That moves the model three times, as in ZeRO-3." in page("zero-fsdp")


@pytest.mark.parametrize("group", [8, 16, 64])
def test_an_expert_has_the_rows_of_its_whole_group(group: int) -> None:
    """Tokens of every rank pick 8 of 64 experts; the advice is a larger group, not a
    smaller one."""
    drawn = np.random.default_rng(3)
    tokens, experts, top = 64, 64, 8
    rows = np.zeros(experts)
    for _ in range(group):
        for _ in range(tokens):
            rows[drawn.permutation(experts)[:top]] += 1
    assert rows.mean() == group * tokens * top / experts
    row = next(s for s in page("experts").splitlines() if s.startswith("| Few tokens per expert"))
    assert "larger EP" in row
    assert "fewer copies (EDP)" in row


@pytest.mark.parametrize(("group", "top"), [(8, 2), (64, 8), (4, 8)])
def test_gathering_all_tokens_sends_a_group_over_k_times_what_sending_copies_does(
    group: int, top: int
) -> None:
    """Megatron's dispatchers `allgather` and `alltoall`, around a ring and in pairs."""
    tokens = 1.0
    gathered = bytes_sent_per_rank(trace("all-gather", "ring", group), group * tokens)
    copies = bytes_sent_per_rank(trace("all-to-all", "pairwise", group), top * tokens)
    assert max(gathered) / max(copies) == pytest.approx(group / top)
    line = next(s for s in page("experts").splitlines() if "`allgather`" in s)
    assert r"$\text{EP}/k$ times the bytes" in line


def test_a_healthy_ring_is_told_by_what_was_measured() -> None:
    """nccl-tests issue 212: 370 GB/s around a ring, 480 GB/s with the switch, of 450 GB/s."""
    measured = 2 * 7 / 8 * 16 * 2**30 / 81.9e-3  # 8 H200, a ring, as the α–β chapter has it
    assert measured == pytest.approx(370e9, rel=0.01)
    for text in (page("hangs-and-slowness"), (DOCS / "journey/when-it-does-not.md").read_text()):
        line = next(s for s in text.splitlines() if "@nccl-tests-issue-212]" in s)
        assert "about 370 GB/s" in line
    assert 'time_s="81.9 ms"' in page("hangs-and-slowness")


def test_what_a_rank_of_a_ring_sends_grows_with_the_ranks_and_stays_below_two_buffers() -> None:
    """It is therefore neither "almost twice" for every ring nor equal for all of them."""
    sent = [max(bytes_sent_per_rank(trace("all-reduce", "ring", n), 1.0)) for n in range(2, 17)]
    assert sent[0] == 1.0
    assert all(fewer < more < 2 for fewer, more in pairwise(sent))
    assert "less than twice the bytes of its gradient" in page("data-parallelism")
    assert "bytes per rank stay below twice the gradient" in page("data-parallelism")
    assert "each rank sends less than twice its buffer" in page("choosing")


def test_chunks_send_more_than_their_number_times_the_messages() -> None:
    """Stage c·P + d is on rank d, so the last rank sends to the first between two chunks."""
    for ranks in range(2, 17):
        for chunks in range(2, 9):
            places = [stage % ranks for stage in range(ranks * chunks)]
            crossings = sum(one != after for one, after in pairwise(places))
            assert crossings > chunks * (ranks - 1)
    journey = (DOCS / "journey/splitting-the-depth.md").read_text("utf-8")
    assert "$V$ slices need slightly more than $V$ times as many messages" in journey
    assert "and more than twice the messages" in page("pipeline-schedules")
    assert "there are more than $V$ times as many messages" in page("pipeline-schedules")
    assert "more than twice as many messages between stages" in page("choosing")


def test_the_parts_of_the_budget_add_up_as_the_memory_chapter_says() -> None:
    found = journey_job("llama-3-8b", "nodes=1 gpus_per_node=8", "zero_stage=3")
    come_and_go = found.activations_bytes + found.working_bytes + found.buffers_bytes
    assert found.reserve_bytes == pytest.approx(2e9 + come_and_go / 20)
    assert found.buffers_bytes == 128256 * 4096 * (2 + 2 + 4)
    assert found.activations_bytes == pytest.approx(
        34 * 8192 * 32 * 4096 + 4 * 128256 * 8192, rel=0.01
    )
    assert 0.17 < -found.missing_bytes / found.capacity_bytes < 0.2
    text = page("memory")
    assert "a twentieth of the three lines above" in text
    assert "**Leave a fifth of the GPU free.**" in text
    assert "This job leaves slightly less" in text
    # A fifth of free memory and the planner's chance are one rule.
    leaner = journey_job("llama-3-8b", "nodes=1 gpus_per_node=8", "zero_stage=3 recipe=fsdp16")
    assert found.fit_chance < SAFE < leaner.fit_chance
    assert -leaner.missing_bytes / leaner.capacity_bytes > 0.2


def test_torchtitans_tested_peaks_are_within_a_tenth_as_the_memory_chapter_says() -> None:
    errors = [
        peak.error for peak in judged_peaks() if peak.tested and peak.run.framework == "torchtitan"
    ]
    assert errors
    assert max(map(abs, errors)) <= 0.1
    assert "torchtitan's few tested peaks are all within a tenth" in page("memory")


def test_half_the_microbatches_double_the_overhead_of_a_pipeline_and_never_its_idle_share() -> None:
    for stages in (2, 4, 8):
        for microbatches in (8, 16, 32):
            more, less = (
                simulate(scheduled("1f1b", stages=stages, microbatches=count))
                for count in (microbatches, microbatches // 2)
            )
            assert less.bubble_overhead == pytest.approx(2 * more.bubble_overhead)
            assert less.bubble_fraction < 2 * more.bubble_fraction
    line = next(s for s in page("pipeline-schedules").splitlines() if "twice the replicas" in s)
    assert "double `bubble_overhead`" in line


@pytest.mark.parametrize(("stages", "microbatches"), [(4, 8), (4, 32), (8, 32), (16, 64)])
def test_slow_messages_rank_schedules_as_the_table_of_the_zero_bubble_chapter(
    stages: int, microbatches: int
) -> None:
    """Parts are equal; the time of a message is a share of a microbatch's three on a rank."""

    def idle(name: ScheduleName, share: float) -> float:
        return simulated(name, stages, microbatches, latency=3 * share).bubble_fraction

    for share in (0.02, 0.05, 0.1, 0.2):
        assert idle("zbv", share) < idle("zb1p", share)
    for share in (0.1, 0.2):
        assert idle("zb2p", share) < idle("zbv", share)
    assert "messages that take up to a fifth of a microbatch's time | ZBV;" in page("zero-bubble")


def test_no_stage_of_zero_but_the_first_is_free_with_more_than_one_microbatch() -> None:
    """It counts passes of a ring over the parameters in a step; an all-reduce is two of them."""

    def passes(stage: int, microbatches: int) -> int:
        setup = job(
            "llama-3-8b", microbatches=microbatches, sequence=8192, zero_stage=stage, buckets=1
        )
        made = step_calls(setup, 0)
        return sum(calls * (1 + (sent.collective == "all-reduce")) for sent, calls in made)

    for count in range(1, 9):
        assert passes(0, count) == passes(1, count) == 2
        assert passes(2, count) == count + 1  # no room for whole gradients: scattered every time
        assert passes(3, count) == 3 * count  # and no weights either: gathered twice
    line = next(s for s in page("zero-fsdp").splitlines() if "Take the lowest stage" in s)
    assert "at least stage 1, which sends no more than DDP" in line


def test_no_chapter_says_that_gradients_hide_best_where_a_pipeline_asks_for_less() -> None:
    """GPT-3 on 1,024 GPUs: bytes over the time that may hide them, at the full peak."""
    step = 6 * 175e9 * 2048 * 32 / 64 / 989.4e12
    gradients = 2 * 15 / 16 * 175e9 / 64 * 2 / (step / 32 * 2 / 3)
    activations = 2 * 32 * 2048 * 12288 * 2 / 8 / step
    assert activations < 1e9 < 50e9 < gradients
    assert "hides best" not in page("rank-mapping") + page("choosing")


@pytest.mark.parametrize("ranks", [4, 8, 64])
def test_a_ring_is_within_a_tenth_of_what_the_least_steps_and_bytes_would_take(ranks: int) -> None:
    """Thakur et al. 2005: halving-doubling sends a ring's bytes in fewer steps, so it is quicker.

    It never gains more than the ring's own latency, which is a tenth at nine times its crossover.
    """
    latency, rate = 14e-6, 50e9
    for message in (9 * ranks * latency * rate, 1e12):
        ring = 2 * (ranks - 1) * (latency + message / ranks / rate)
        halving = 2 * np.log2(ranks) * latency + 2 * (ranks - 1) / ranks * message / rate
        assert 0.9 * ring < halving < ring
    assert "no algorithm between ranks sends less" in page("ring-all-reduce")
    assert "noticeably faster than a ring" in page("ring-all-reduce")


def test_1f1b_waits_for_nearly_two_messages_with_every_microbatch() -> None:
    """Counted by hand from events, as the placement chapter says next to what a
    pipeline may hide."""
    ranks, batch, forward, backward, message = 8, 32, 1 / 3, 2 / 3, 0.05
    ahead = [min(ranks - rank - 1, batch) for rank in range(ranks)]
    orders = [
        [("F", m) for m in range(n)]
        + [each for m in range(batch) for each in (("F", m + n), ("B", m)) if each[1] < batch]
        for n in ahead
    ]
    ended: dict[tuple[int, str, int], float] = {}
    free, at = [0.0] * ranks, [0] * ranks
    while any(at[rank] < len(orders[rank]) for rank in range(ranks)):
        for rank in range(ranks):
            while at[rank] < len(orders[rank]):
                kind, m = orders[rank][at[rank]]
                turn = kind == "B" and rank == ranks - 1
                before = (rank if turn else rank + (1 if kind == "B" else -1), kind, m)
                before = (rank, "F", m) if turn else before
                if before[0] >= 0 and before not in ended:
                    break
                came = ended.get(before, 0.0) + (0 if turn or before[0] < 0 else message)
                free[rank] = max(free[rank], came) + (forward if kind == "F" else backward)
                ended[rank, kind, m] = free[rank]
                at[rank] += 1
    waited = (max(free) - (batch + ranks - 1)) / message
    assert waited == pytest.approx(68)  # as the caption on slow messages has it
    assert waited / batch == pytest.approx(2 * (ranks - 1) / ranks, rel=0.25)
    assert "1F1B waits for nearly two" in page("placement")


def test_the_zero_chapter_says_what_its_tables_count() -> None:
    """By hand: 18 bytes per parameter, and a ring over whole nodes that shares eight ports."""
    choice = build("zero-choice", {})
    assert choice.values["usable"].value == 0.6  # three fifths, as its caption says
    eight = model("llama-3-8b").parameters
    assert eight * (6 + 12 / 4096) > choice.values["room"].value > eight * (2 + 16 / 8)
    assert "three fifths of an H100" in page("zero-fsdp")
    flat, hybrid = 3 * 63 / 64 * 14e9 / 8, 2 * 7 / 8 * 14e9 / 8
    traffic = build("hybrid-traffic", {}).values
    assert traffic["flat_nic"].value == pytest.approx(flat)
    assert traffic["hybrid_nic"].value == pytest.approx(hybrid)
    assert 0.5 < hybrid / flat < 1
    assert "saves less than half of each NIC's bytes" in page("zero-fsdp")


def test_what_helps_too_few_tokens_is_what_the_zero_chapter_says() -> None:
    """Eight ports for eight ranks are one for each, so a replica of eight needs what they do."""

    def step_s(sizes: str, options: str) -> float:
        options = f"sequence=1024 global_batch=64 {options}"
        return journey_job("llama-3-8b", f"nodes=8 gpus_per_node=8 {sizes}", options).step_time_s

    limits = build("strategy-limits", {}).values
    port, node = float(limits["alone"].value), float(limits["tokens"].value)
    assert port == pytest.approx(8 * node)
    sharded = step_s("", "zero_stage=3")
    assert step_s("cp=2", "zero_stage=3 microbatch_size=2") == pytest.approx(sharded, rel=0.05)
    assert step_s("tp=8", "zero_stage=1 microbatch_size=8") < 0.7 * sharded
    row = re.search(r"\| fewer tokens per GPU than .*", page("zero-fsdp"))
    assert row
    assert "TP with ZeRO-1" in row[0]
    assert "context" not in row[0]


def test_the_tensor_chapter_says_what_a_step_sends_and_where_a_group_stops_paying() -> None:
    values = build("tp-step-bytes", {"dp": 8, "all_reduces": 5}).values
    layer = 10 * 7 / 8 * 2048 * 12288 * 2  # ten halves with sequence parallelism
    assert values["tp_bytes"].value == pytest.approx(32 * 96 / 8 * layer)
    ratios = build("tp-link-ratio", {"model": "gpt-3-175b", "preset": "h100-ndr"}).values
    assert ratios["rack_tp8"].value < 1 < ratios["rack_tp16"].value
    assert ratios["rack_tp16"].value > ratios["nodes_tp16"].value == pytest.approx(1, rel=0.05)
    text = page("tensor-parallelism")
    assert "all_reduces: 5" in text
    assert "TP 16 on two whole nodes is near 1" in text
    assert "because those GPUs compute faster and the latency stays" in text
    assert 0.5 < build("swept-axis", {"alike": True}).values["alike_8B_tp8_16"].value < 0.55
    assert "Leaving the node costs nearly half at an equal microbatch" in text
    found = build("swept-axis", {"jobs": ["3B on 64"], "axes": ["tp", "pp"]}).values
    kept = {name: found[f"share_3B_{name}"].value for name in ("tp4", "pp4", "tp8", "pp8", "pp16")}
    assert kept["tp4"] == pytest.approx(kept["pp4"], rel=0.03)
    assert kept["pp8"] > 1.2 * kept["tp8"]
    assert 0.5 < kept["pp16"] < 0.65
    text = page("pipeline-schedules")
    assert "Up to four ranks, both cost about the same; with eight, the pipeline keeps more" in text
    assert "while the pipeline keeps more than half" in text


def test_the_pipeline_chapter_chooses_as_its_simulations_say() -> None:
    def idle(at: float) -> dict[str, float]:
        given = {"stages": 8, "microbatches": 32, "chunks": [2, 4], "at": at}
        found = build("pipeline-latency", given).values
        return {
            name: found[f"{name}_at"].value for name in ("gpipe", "one_f_one_b", "interleaved_2")
        }

    slow, slowest = idle(0.05), idle(0.2)
    assert slow["interleaved_2"] < slow["gpipe"] < slow["one_f_one_b"]
    assert slowest["gpipe"] < slowest["interleaved_2"] < slowest["one_f_one_b"]
    stretched = {name: 1 / (1 - share) for name, share in slow.items()}
    shorter = 1 - stretched["interleaved_2"] / stretched["one_f_one_b"]
    waits = (stretched["interleaved_2"] - 1) / (stretched["one_f_one_b"] - 1)
    assert (shorter, waits) == (pytest.approx(1 / 8, rel=0.1), pytest.approx(1 / 2, rel=0.1))
    text = page("pipeline-schedules")
    assert (
        "two chunks are idle for about half as long as 1F1B, which makes the step an eighth" in text
    )
    assert "which is idle for less; if a message takes more than a fifth" in text
    kept = {
        (recompute, size): journey_job(
            "gpt-3-175b",
            "nodes=64 gpus_per_node=8 tp=8",
            "sequence=2048 global_batch=256 zero_stage=2 "
            f"recompute={recompute} microbatch_size={size}",
        )
        for recompute, size in (("none", 1), ("none", 4), ("full", 4))
    }
    assert kept["none", 4].fit_chance < 0.5 < SAFE < kept["none", 1].fit_chance
    assert kept["full", 4].fit_chance > SAFE
    assert kept["none", 1].step_time_s > 2 * kept["full", 4].step_time_s
    assert "microbatches have to be large, and those fit only with recomputation" in text
    message_s = 2048 * 12288 * 2 / 8 / 50e9  # an eighth of a message over a port
    work_s = 6 * 175e9 * 2048 / 64 / 989.4e12
    assert message_s / work_s == pytest.approx(1 / (2 * 6 * 12) / 2, rel=0.15)
    assert "about half of the $1/(2VV')$ at which going from six chunks to twelve" in text
    few, many = ((m + 7 / 2) / (m + 7) for m in (32, 16 * 8))
    assert 1 - many < 0.03 < 1 - few
    assert "from $M = 16P$ on, that shortens the step by only a few percent" in text


def test_the_memory_of_the_gpt_3_pipeline_has_the_parts_that_its_chapter_lists() -> None:
    """A 64th of the parameters on a rank, twelve of its bytes sharded over eight replicas."""
    sizes = "nodes=64 gpus_per_node=8 tp=8 pp=8"
    found = journey_job("gpt-3-175b", sizes, "sequence=2048 global_batch=256 zero_stage=1")
    assert found.state_bytes == pytest.approx(175e9 / 64 * (2 + 4 + 12 / 8), rel=0.05)
    # 32 bytes per number of a layer's input without dropout masks, twelve layers, eight in flight
    assert found.activations_bytes == pytest.approx(32 * 2048 * 12288 * 12 * 8 / 8, rel=0.01)
    rest = found.total_bytes - found.state_bytes - found.activations_bytes
    assert 2e9 < rest < 3e9  # buffers and reserve
    figure = build(
        "stage-memory",
        {"model": "gpt-3-175b", "stages": 8, "microbatches": 32, "chunks": 2, "tp": 8},
    ).values
    assert figure["one_f_one_b_first"].value == pytest.approx(34 * 2048 * 12288 * 12 * 8 / 8)
    assert "slightly less than in the figure, which includes dropout masks" in page(
        "pipeline-schedules"
    )


def test_the_roofline_page_compares_the_clouds_and_the_tokens_as_its_tables_do() -> None:
    table = build("cloud-networks", {})
    peaks, rates = ({row[1]: row[at] for row in table.rows} for at in (3, 4))
    assert peaks["GB200"] / peaks["H100"] == pytest.approx(2.5, rel=0.02)
    usual = [row for row in table.rows if row[4] == 50e9]
    assert len(usual) > len(table.rows) / 2
    assert {row[1] for row in table.rows if row[4] == 2 * 50e9} == {"B300", "GB300"}
    assert [row[0] for row in table.rows if row[4] < 50e9] == ["Google Cloud A3 Mega (8 x 200G)"]
    assert "from H100 to GB200 the peak grows two and a half times" in page("roofline-exactly")
    assert rates["GB200"] == 50e9
    alone = build("critical-tokens", {}).values["h100_single"].value
    assert alone == pytest.approx(15 / 16 * 989.4e12 / 50e9)
    limit = build("zero3-tokens", {}).values["h100_ib_ndr"].value
    assert limit == pytest.approx(989.4e12 / 50e9)
    assert "Plan with full rates, as all pages of this site do" in page("communication-roofline")


def test_a_kernel_that_stores_scores_needs_what_the_memory_chapter_counts() -> None:
    sizes = "nodes=1 gpus_per_node=8"
    kept, lean = (
        journey_job("llama-3-8b", sizes, f"zero_stage=3 flash_attention={on}").activations_bytes
        for on in ("off", "on")
    )
    assert kept - lean == pytest.approx(2 * 8192**2 * 32 * 32, rel=0.01)
    assert "each of the $8192^2$ scores takes two bytes, in each of 32 heads and 32 layers" in page(
        "memory"
    )
