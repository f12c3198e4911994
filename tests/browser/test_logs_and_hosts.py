"""Logs, hosts and printed ranks, pasted into the tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from figgen.__main__ import main
from tests.browser.site import ROOT
from tests.browser.waits import addressed
from tests.taking.test_collective_logs import NCCL
from tests.taking.test_logs import MEGATRON, OOM


def paste(page: Page, label: str, text: str) -> None:
    box = page.get_by_label(label, exact=True)
    if not box.is_visible():
        page.locator(".tool-bring summary").click()
    box.fill(text)
    page.get_by_role("button", name="Load it").click()


def test_a_table_of_nccl_tests_fills_the_converter(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/converter/")
    page.locator("#converter .converter-rows small").first.wait_for()
    paste(page, "Log or speed", NCCL)
    said = page.locator(".tool-answer")
    expect(said).to_contain_text("all-reduce of 2 ranks on nodes of 2, 3 sizes.")
    expect(said).to_contain_text("The best busbw is 107% of the line rate, 450\u00a0GB/s: healthy")
    expect(said).to_contain_text("α is 22.1 µs")
    expect(said.locator("tbody tr")).to_have_count(3)
    expect(page.locator("#converter [name=ranks]")).to_have_value("2")
    expect(page.locator("#converter [name=bytes]")).to_have_value("8589934592 B")
    # busbw of an all-reduce among two ranks is its algbw: 8.59 GB in 31.2 ms.
    expect(page.locator("#converter .converter-out").first).to_contain_text("275.0 GB/s")
    addressed(page, ranks=2)
    paste(page, "Log or speed", OOM)
    expect(said).to_contain_text("There was enough memory, but fragmented: 7.52 GB")
    paste(page, "Log or speed", MEGATRON)
    expect(said).to_contain_text("Read as 3 steps of megatron-lm: 4.05 s per step")
    paste(page, "Log or speed", "hello")
    expect(said).to_contain_text("Expected a table of nccl-tests")


def test_hosts_and_printed_ranks_are_compared_with_the_map(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/rank-map/?nodes=2&gpus=4&tp=2&pp=2")
    page.locator("[data-launcher=rankfile]:enabled").wait_for()
    label = "Script, command, configuration or config.json"
    said = page.locator(".tool-answer")
    paste(page, label, "\n".join(f"{rank}: node{rank % 2}" for rank in range(8)))
    expect(said).to_contain_text("6 ranks of 8 run elsewhere than in the layout")
    expect(said).to_contain_text("4 groups of TP span more nodes")
    expect(said).to_contain_text("The map marks the 6 ranks that differ.")
    paste(page, label, "first1\nsecond2\n")
    expect(said).to_contain_text("It agrees with the map.")
    page.locator("[data-launcher=rankfile]").click()
    code = page.get_by_label("Launch settings", exact=True)
    expect(code).to_contain_text("rank 4=second2 slot=0")
    page.locator("[data-launcher=hostfile]").click()
    expect(code).to_contain_text("first1 slots=4")


def test_fields_of_the_map_take_what_people_write(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/rank-map/?nodes=2&gpus=8&tp=2")
    nodes = page.locator("#rank-map [name=nodes]")
    nodes.fill("1k")
    addressed(page, nodes=1000)
    expect(nodes).not_to_have_attribute("aria-invalid", "true")
    nodes.fill("many")
    expect(nodes).to_have_attribute("aria-invalid", "true")


def test_the_map_goes_on_with_the_model_and_batch_of_a_script(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/rank-map/")
    script = (
        "torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
        "--num-attention-heads 32 --group-query-attention --num-query-groups 8 "
        "--ffn-hidden-size 14336 --swiglu --seq-length 8192 --max-position-embeddings 8192 "
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --context-parallel-size 2 "
        "--use-distributed-optimizer --micro-batch-size 1 --global-batch-size 256 --bf16"
    )
    paste(page, "Script, command, configuration or config.json", script)
    line = page.locator(".job-line")
    expect(line).to_contain_text("llama-3-8b · 64 GPUs · 256 × 8,192 tokens")
    link = line.locator("a[data-tool=modeler]")
    expect(link).to_have_attribute("href", re.compile("model=llama-3-8b.*global_batch=256"))
    page.get_by_role("heading", name="What the groups carry").scroll_into_view_if_needed()
    expect(page.locator("[name=volumes-model]")).to_have_value("llama-3-8b")
    # 256 sequences on 4 replicas.
    expect(page.locator("#rank-map")).to_contain_text("64 microbatches of 8,192 tokens a step")


def test_a_measured_speed_is_judged_in_the_modeler(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?model=llama-3-8b&nodes=16&tp=2&zero=1#is-my-number-good")
    box = page.locator("#is-my-number-good")
    measured = box.get_by_label("What you measured, per GPU", exact=True)
    measured.fill("3000 tokens/s")
    box.get_by_role("button", name="Compare", exact=True).click()
    expect(box).to_contain_text("Your step is slower than predicted: a step took")
    expect(box).to_contain_text("similar published runs reach more")
    expect(box.locator("ol li")).to_have_count(5)
    measured.fill("90 GB")
    box.get_by_role("button", name="Compare", exact=True).click()
    expect(box).to_contain_text("what you measured: expected the time of a step")
    # A log brings its own number, and the press beside it asks.
    paste(page, "Script, command, configuration or config.json", MEGATRON)
    page.locator(".tool-form .tool-answer").get_by_role("button", name="Is my number good?").click()
    expect(box).to_contain_text("a step took 4.05\u00a0s")
    expect(box).to_contain_text("The log's global batch is 512, so the job is judged with it")
    measured.fill("704000 tokens/s")
    box.get_by_role("button", name="Compare", exact=True).click()
    expect(box).to_contain_text("all GPUs together, or of another job?")


def test_a_measured_step_becomes_the_entry_that_the_command_line_prints(
    page: Page, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.goto(f"{site}/tools/modeler/?model=llama-3-8b&nodes=16&tp=2&zero=1#is-my-number-good")
    box = page.locator("#is-my-number-good")
    box.get_by_label("What you measured, per GPU", exact=True).fill(MEGATRON)
    box.get_by_role("button", name="Compare", exact=True).click()
    box.locator("summary", has_text="Add this step to the catalog").click()
    expect(box).to_contain_text("Give the address at which you published your log")
    where = box.get_by_label("Its permanent address", exact=True)
    where.fill("train.log")
    expect(box).to_contain_text("the address: expected the https:// address of the log")
    address = "https://github.com/you/cluster/blob/3f2a91c/train.log"
    where.fill(address)
    code = box.get_by_label("Entry for the catalog", exact=True)
    expect(code).to_contain_text('confidence = "read"')
    log = tmp_path / "train.log"
    log.write_text(MEGATRON, "utf-8")
    job = ("--model", "llama-3-8b", "--nodes", "16", "--gpus-per-node", "8", "--tp", "2")
    assert main(["verdict", *job, "--zero", "1", "--log", str(log), "--row", address]) == 0
    assert code.text_content() == capsys.readouterr().out.rstrip("\n") + "\n"


def test_the_planner_asks_of_its_fastest_layout_whether_a_number_is_good(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/tools/planner/?model=llama-3-8b&nodes=1")
    page.get_by_role("button", name="Is my number good?").click()
    expect(page.locator("#is-my-number-good")).to_have_attribute("open", "")
    expect(page).to_have_url(re.compile(r"/tools/modeler/\?.*nodes=1"))


def test_the_profile_reader_takes_a_log_dropped_or_pasted(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/profile/")
    chosen = page.locator("#profile [name=files]")
    chosen.set_input_files({"name": "rank0.log", "mimeType": "text/plain", "buffer": OOM.encode()})
    shown = page.locator("#profile .profile-answer")
    expect(shown).to_contain_text("it asked for 2.15\u00a0GB with 537\u00a0MB free")
    expect(shown).to_contain_text("There was enough memory, but fragmented")
    clip = "const clipboardData = new DataTransfer(); clipboardData.setData('text', text);"
    paste_text = (
        f"text => {{ {clip} dispatchEvent(new ClipboardEvent('paste', {{ clipboardData }})) }}"
    )
    page.evaluate(paste_text, MEGATRON)
    expect(shown).to_contain_text("Read as 3 steps of megatron-lm: 4.05\u00a0s per step")
    page.evaluate(paste_text, "hello")
    expect(page.locator("#profile .profile-messages")).to_contain_text("expected a trace")


def test_a_measured_file_is_answered_on_the_first_screen_as_on_the_command_line(
    page: Page, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / "figgen" / "catalog" / "measured-h100.json"
    address = "https://github.com/you/cluster/blob/3f2a91c/measured.json"
    page.goto(f"{site}/tools/measure/")
    tool = page.locator("#measured-machine")
    tool.get_by_label("Your measured.json", exact=True).set_input_files(path)
    assert main(["measured", str(path)]) == 0
    answer, *_, rates = capsys.readouterr().out.splitlines()
    sentence = tool.locator(".tool-sentence")
    expect(sentence).to_have_text(answer)
    expect(sentence).to_be_in_viewport()
    expect(tool.get_by_role("link", name="modeler")).to_have_attribute(
        "href", f"../modeler/?chip=h100-sxm-80gb&measured={rates}"
    )
    tool.get_by_text("Add your machine to the catalog").click()
    where = tool.get_by_label("Its permanent address", exact=True)
    where.fill("measured.json")
    expect(tool).to_contain_text("the address: expected the https:// address of the file")
    where.fill(address)
    code = tool.get_by_label("Entry for the catalog", exact=True)
    expect(code).to_contain_text('confidence = "read"')
    assert main(["measured", str(path), "--row", address]) == 0
    assert code.text_content() == capsys.readouterr().out.rstrip("\n") + "\n"


JOB = """torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 \\
  --pipeline-model-parallel-size 4 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
  --ffn-hidden-size 14336 --group-query-attention --num-query-groups 8 --swiglu \\
  --vocab-size 128256 --seq-length 8192 --micro-batch-size 1 --global-batch-size 64 --bf16
"""
ELSEWHERE = {
    "modeler": "model=llama-3-8b&nodes=4&gpus=8&tp=2&pp=4",
    "planner": "model=llama-3-8b&nodes=4&gpus=8",
    "rank map": "nodes=4&gpus=8&tp=2&pp=4",
    "schedule lab": "m.nodes=4&m.gpus=8&m.tp=2&m.pp=4",
}


@pytest.mark.parametrize("tool", ["converter", "schedules", "profile"])
def test_a_job_that_a_tool_does_not_read_leads_to_those_that_do(
    page: Page, site: str, tool: str
) -> None:
    page.goto(f"{site}/tools/{tool}/")
    if tool == "profile":
        page.locator("#profile input[type=file]").first.set_input_files(
            [{"name": "train.sh", "mimeType": "text/plain", "buffer": JOB.encode()}]
        )
    else:
        page.locator(".tool-bring summary").click()
        page.locator(".tool-bring textarea").fill(JOB)
        page.get_by_role("button", name="Load it").click()
    tools = page.locator(".tool p:has-text('This is a job')")
    for title, query in ELSEWHERE.items():
        address = tools.get_by_role("link", name=title, exact=True).get_attribute("href") or ""
        assert query in address.replace("sequence=8192&", "").replace("schedule=1f1b&", "")


def test_a_model_that_is_brought_to_the_profile_reader_is_told_as_one(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/tools/profile/")
    model = (
        '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,'
        ' "num_attention_heads": 32, "intermediate_size": 11008}'
    )
    page.locator("#profile input[type=file]").first.set_input_files(
        [{"name": "config.json", "mimeType": "application/json", "buffer": model.encode()}]
    )
    expect(page.locator("#profile")).to_contain_text("a model of 6,738,415,616 parameters")
    expect(page.locator("#profile")).to_contain_text("This is a model and no job.")
