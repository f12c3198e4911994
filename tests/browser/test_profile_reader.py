"""The profile reader in a real browser, compared with the command line on the same files."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import pickle
import random
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from figgen.__main__ import main
from figgen.scenarios.tools.profile import TITLES
from tests.browser.engine import Ask
from tests.browser.modeler import same
from tests.browser.site import ROOT
from tests.browser.waits import Held, drawn
from tests.models.test_trace_reader import REFUSED
from tests.test_memory_snapshot import (
    FRAMES,
    SNAPSHOT,
    Hostile,
    block,
    event,
    random_trace,
    segment,
)
from tests.test_memory_snapshot import RECORDED as SNAPSHOT_RECORDED
from tests.test_profile import FILES, NCCL, SIZES, kernel
from tests.test_profile_cases import CASES, RECORDED

SUITES = "profile_suites.js"
PATH = "/tools/profile/"
Given = Sequence[tuple[str, bytes]]


def said_by(*words: str) -> tuple[str, str]:
    """Return what the command line prints, and the last line of its errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words)
    return out.getvalue(), err.getvalue()


def case(files: Given, **more: Any) -> dict[str, Any]:
    return {"files": [(name, base64.b64encode(data).decode()) for name, data in files], **more}


def agree(ask: Ask, verb: str, folder: Path, jobs: Sequence[Given]) -> None:
    """Assert that the page says about each of the `jobs` what the command line prints, as text and
    JSON."""
    shown = ask("read", [case(files) for files in jobs])
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(folder)  # a file's name stands for a rank that its trace does not tell
    for files, found in zip(jobs, shown, strict=True):
        for name, data in files:
            Path(name).write_bytes(data)
        names = [name for name, _ in files]
        text, problem = said_by(verb, *names)
        assert not problem
        assert "error" not in found, found
        assert found["text"] == text
        assert same(found["data"], json.loads(said_by(verb, *names, "--json")[0]))
    monkeypatch.undo()


def test_recorded_jobs_are_told_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    read = [(path.name, path.read_bytes()) for path in FILES]
    plain = [(name.removesuffix(".gz"), gzip.decompress(data)) for name, data in read[:2]]
    jobs = [[one] for one in read] + [read[0:2], read[2:4], read[4:6], read, plain]
    agree(ask, "profile", tmp_path, jobs)


def random_gpu_trace(rng: random.Random) -> bytes:
    """Return kernels, collectives, copies and launches of a GPU at random times, some malformed."""
    events: list[Any] = []
    for number in range(rng.randint(1, 150)):
        start, took = round(rng.uniform(0, 900), 3), round(rng.expovariate(0.05), 3)
        kind = rng.choice(("gemm", "nccl", "nccl", "copy", "step", "metadata"))
        args: dict[str, Any] = {"correlation": number} if rng.random() < 0.7 else {}
        if kind == "nccl":
            name = rng.choice(("AllReduce", "AllGather", "SendRecv", "ReduceScatter", "Thing"))
            given = NCCL | {"Process Group Name": rng.choice(("1", "2")), "dtype": rng.choice(
                ("BFloat16", "Float", "?")), "Group size": rng.choice((8, 4, None))}  # fmt: skip
            args |= rng.choice((given, {}, given | {"In msg nelems": float("nan")}))
            args.pop("Collective name", None)
            events.append(kernel(f"ncclDevKernel_{name}_RING_LL(x)", start, took, **args))
        elif kind == "copy":
            events.append(kernel("Memcpy", start, took, **args) | {"cat": "gpu_memcpy"})
        elif kind == "step":
            name = f"ProfilerStep#{number % 3}"
            category = rng.choice(("user_annotation", "gpu_user_annotation"))
            events.append(kernel(name, start, took * 5) | {"cat": category})
        elif kind == "gemm":
            events.append(kernel("gemm", start, took, **args))
        else:
            events.append({"ph": "M", "name": "process_name", "args": {"name": 'a "[{\\" b'}})
        if "correlation" in args:
            launched = {"cat": "cuda_runtime", "dur": 2.5, "ts": start - rng.uniform(-9, 40)}
            events.append(kernel("cudaLaunchKernel", 0, 0, correlation=number) | launched)
    events.append(kernel("gemm", 1000.0, 12.5))
    header = rng.choice(({}, {"distributedInfo": {"rank": rng.randint(0, 9), "pg_config": [
        {"pg_name": "2", "pg_desc": "tp", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}}))  # fmt: skip
    if rng.random() < 0.2:
        return json.dumps(events).encode()
    return json.dumps(header | {"traceEvents": events, "traceName": "é"}).encode()


def test_random_traces_of_gpus_are_told_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    rng = random.Random(20)
    jobs = [
        [(f"rank{rank}.json", random_gpu_trace(rng)) for rank in range(rng.randint(1, 3))]
        for _ in range(60)
    ]
    agree(ask, "profile", tmp_path, jobs)


def test_a_modelled_step_is_read_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    made = tmp_path / "step.json"
    said_by("trace-export", str(made), *SIZES)
    agree(ask, "profile", tmp_path, [[(made.name, made.read_bytes())]])


def test_a_rank_stands_beside_the_model_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    queries = (
        "model=llama-3-8b&nodes=2&tp=2&pp=2&microbatches=4", "model=llama-3-8b&zero=3&nodes=1",
        "nodes=16&tp=8&pp=4&cp=2&microbatches=8", "preset=deepseek-v3",
    )  # fmt: skip
    made = tmp_path / "step.json"
    said_by("trace-export", str(made), *SIZES)
    files = [[made], list(FILES[:2]), list(FILES[4:6]), [made]]
    given = [
        case([(path.name, path.read_bytes()) for path in paths], query=query)
        for paths, query in zip(files, queries, strict=True)
    ]
    for paths, found in zip(files, ask("besides", given), strict=True):
        assert found["problems"] == []
        layout = shlex.split(found["command"])[3:]
        words = ("profile", *map(str, paths), *layout)
        assert found["text"] == said_by(*words)[0]
        assert same(found["data"], json.loads(said_by(*words, "--json")[0]))


def test_what_is_no_address_of_the_modeler_is_refused(ask: Ask) -> None:
    hello, query, address = ask("addresses", ["hello", "nodes=2&tp=4", "https://a.b/c/?nodes=2#x"])
    assert "expected an address of the modeler" in hello
    assert query == address == ""


def test_cases_and_recordings_are_told_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    cases = sorted(CASES.glob("*.json"))
    assert len(cases) > 3
    read = [
        [(path.name, path.read_bytes())]
        for path in (*cases, RECORDED)
        if path.name != "cuda_without_kernels.json"
    ]
    agree(ask, "profile", tmp_path, read)
    snapshots = [*sorted(CASES.glob("*.pickle")), SNAPSHOT_RECORDED]
    agree(ask, "memory-snapshot", tmp_path, [[(p.name, p.read_bytes())] for p in snapshots])


def test_two_recordings_are_compared_as_on_the_command_line(ask: Ask) -> None:
    one, other = [(path.name, path.read_bytes()) for path in FILES[:2]]
    [found] = ask("read", [case([one]) | {"against": case([other])["files"]}])
    words = ("profile", str(FILES[0]), "--against", str(FILES[1]))
    assert found["text"] == said_by(*words)[0]
    assert same(found["data"], json.loads(said_by(*words, "--json")[0]))


def test_what_is_no_trace_is_refused_for_the_same_reason(ask: Ask) -> None:
    wrong = {**REFUSED, '{"traceEvents": [{"ph": "X", "ts": 1e999}]}': "a finite ts"}
    shown = ask("read", [case([("trace.json", text.encode())]) for text in wrong])
    for (text, reason), found in zip(wrong.items(), shown, strict=True):
        assert reason in found.get("error", ""), (text[:60], found)
    cut, latin, bomb = (
        FILES[0].read_bytes()[:4000], '{"é": 1}'.encode("latin-1"), gzip.compress(b" " * 3_000_000),
    )  # fmt: skip
    shown = ask("read", [case([("a.json", data)]) for data in (cut, latin, bomb)])
    for found, reason in zip(
        shown, ("a readable file", "a list traceEvents", "an empty file"), strict=True
    ):
        assert reason in found["error"]


def test_values_are_read_across_pieces(ask: Ask) -> None:
    events = [kernel('gemm [{"\\', 1234.5 + i, 17.25, b={"c": [i, "\\\\"]}) for i in range(9)]
    whole = json.dumps({"a": {"b": "}]"}, "n": 12, "traceEvents": events, "after": 3})
    texts = [(whole, size) for size in (1, 2, 7, 1000)] + [(json.dumps(events, indent=1), 3)]
    assert ask("cut", texts) == [events] * 5
    assert ask("ends", ['"a\\"b" ', '{"a": "]"}', "[1, [2]", "12", "12,", '"a\\\\"']) == [
        6, 10, -1, -1, 2, 5,
    ]  # fmt: skip


def random_snapshot(rng: random.Random) -> dict[str, Any]:
    """Return segments in any state, in older formats too, and a trace that begins in the middle."""
    events, _, live = random_trace(rng)
    states = ("active_allocated", "inactive", "active_pending_free")
    blocks = [
        block(rng.randint(512, 2**32), rng.choice(states), rng.choice(list(FRAMES)),
              asked=rng.randint(1, 512))
        for _ in range(9)
    ]  # fmt: skip
    old = block(2**20, "active_allocated")
    del old["frames"], old["requested_size"]
    old["history"] = [
        {"addr": 0, "real_size": 1000, "frames": event("alloc", 0, 1, "loss")["frames"]}
    ]
    segments = [segment(2**45, [*blocks, old]), segment(2**46, [block(2**21, "inactive")])]
    segments += [segment(a, [block(size, "active_allocated")]) for a, size in live.items()]
    return {
        "segments": segments,
        "device_traces": [events[rng.randint(0, 30) :]],
        "version": -(2**70),
    }


def test_snapshots_are_told_as_on_the_command_line(ask: Ask, tmp_path: Path) -> None:
    rng = random.Random(3)
    held = [SNAPSHOT, *(random_snapshot(rng) for _ in range(12))]
    jobs = [
        [(f"{at}-{protocol}.pickle", pickle.dumps(one, protocol))]
        for at, one in enumerate(held) for protocol in (2, 3, 4, 5)
    ]  # fmt: skip
    agree(ask, "memory-snapshot", tmp_path, jobs)
    other = case([("a.pickle", pickle.dumps(SNAPSHOT))], device=1)
    [found] = ask("read", [other])
    assert found["data"]["state"]["allocated"] == 64 * 2**20


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_hostile_snapshot_is_refused_and_runs_nothing(ask: Ask, protocol: int) -> None:
    hostile = {
        "expected plain data, got 'posix.system'": Hostile(),
        "expected plain data": {"segments": [Hostile()]},
        "expected a dict with segments": [1, 2],
        "expected a dict with a list of segments": {"traces": []},
        "state of a block": {"segments": [segment(0, [block(1, "lost")])]},
        "an event of the trace": {"segments": [], "device_traces": [[{"action": "alloc"}, 3]]},
        "size of a block": {"segments": [{"blocks": [{"size": "x", "state": "inactive"}]}]},
    }
    cases = [case([("s.pickle", pickle.dumps(content, protocol))]) for content in hostile.values()]
    for reason, found in zip(hostile, ask("read", cases), strict=True):
        assert reason in found["error"], found


def test_bytes_that_are_no_pickle_are_refused(ask: Ask, tmp_path: Path) -> None:
    whole = pickle.dumps(SNAPSHOT, 4)
    rng = random.Random(9)
    broken = [
        b"\x80\x05K", b"\x80\x09N.", b"\x80\x02a.", b"\x80\x02}K\x01u.", b"\x80\x04h\x05.",
        b"\x80\x02cposix\nsystem\n.", b"\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02r\xff\xff\xff\xff.", *(whole[:n] for n in range(2, len(whole), 97)),
    ]  # fmt: skip
    found = ask("read", [case([("s.pickle", data)]) for data in broken])
    assert all("error" in one for one in found)
    spoilt = [bytearray(whole) for _ in range(200)]
    for data in spoilt:
        data[rng.randrange(2, len(data))] = rng.randrange(256)
    both = 0
    for data, one in zip(
        spoilt, ask("read", [case([("s.pickle", d)]) for d in spoilt]), strict=True
    ):
        (tmp_path / "s.pickle").write_bytes(data)
        text, _ = said_by("memory-snapshot", str(tmp_path / "s.pickle"))
        both += bool(text) and "text" in one
        assert not text or one.get("text", text) == text
    assert both > 50, "most single bytes are within names and sizes"


def opened(page: Page, site: str) -> Page:
    page.goto(f"{site}{PATH}")
    page.locator("#profile input[name=files]").wait_for()
    return page


def test_page_reads_files_and_says_what_it_cannot_read(
    page: Page, site: str, axe: Callable[..., list[str]], tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    opened(page, site)
    assert axe(page, within="article") == []
    page.get_by_role("button", name="Read a recorded example").press("Enter")
    expect(page.locator(".tool-sentence")).to_contain_text(
        "rank 1, which computes longest of 2 ranks"
    )
    asked = page.get_by_label("Traces of one or several ranks")
    asked.set_input_files([str(path) for path in FILES[:2]])
    expect(page.locator("#profile[aria-busy]")).to_have_count(0)  # until then the example stands
    expect(page.get_by_role("link", name="ZeRO and FSDP")).to_be_visible()
    assert axe(page, within="article") == []
    for name in ("profile.txt", "profile.json"):
        with page.expect_download() as download:
            page.locator(f"[data-file='{name}']").click()
        text = download.value.path().read_text(encoding="utf-8")
        options = ["--json"] if name.endswith("json") else []
        printed, _ = said_by("profile", *(str(path) for path in FILES[:2]), *options)
        assert same(json.loads(text), json.loads(printed)) if options else text == printed
    page.get_by_label("A configuration of the modeler").fill("?model=llama-3-8b&nodes=1&zero=3")
    rows = page.get_by_label("Recorded and predicted")
    expect(rows.get_by_role("link", name="Efficiency")).to_be_visible()
    expect(page.locator(".profile-beside > *")).to_have_count(2)
    page.get_by_label("A configuration of the modeler").fill("?tp=7")
    expect(page.locator(".profile-beside .tool-message")).to_contain_text("expected")
    asked.set_input_files([{"name": "s.pickle", "mimeType": "", "buffer": pickle.dumps(SNAPSHOT)}])
    expect(page.get_by_label("Parts of the reserved memory")).to_contain_text("free segments0.021")
    page.get_by_label("GPU").select_option("1")
    expect(page.get_by_role("heading", name="Memory of GPU 1")).to_be_visible()
    hostile = '<img src=x onerror="alert(1)">'
    trace = [kernel("gemm", 0, 1), kernel("ncclAllReduce", 1, 2, **(
        NCCL | {"Process Group Description": hostile * 90}))]  # fmt: skip
    asked.set_input_files(
        [{"name": f"{hostile[:9]}.json", "mimeType": "", "buffer": json.dumps(trace).encode()}]
    )
    expect(page.get_by_label("Calls of that rank")).to_contain_text(hostile)
    assert page.locator("#profile img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    asked.set_input_files([{"name": "no.json", "mimeType": "", "buffer": b"{"}])
    expect(page.locator(".profile-messages")).to_contain_text("expected a whole JSON value")
    assert axe(page, within="article") == []


def files_chosen_while_the_example_loads(page: Page, site: str) -> tuple[Held, Locator]:
    """Choose the reader's files while the example loads; return its held files and the answer."""
    opened(page, site)
    held = Held(page, "**/examples/*")
    with page.expect_request("**/examples/*rank1*"):
        page.get_by_role("button", name="Read a recorded example").click()
    page.get_by_label("Traces of one or several ranks").set_input_files(
        [{"name": "s.pickle", "mimeType": "", "buffer": pickle.dumps(SNAPSHOT)}]
    )
    answer = page.get_by_label("Parts of the reserved memory")
    expect(answer).to_contain_text("free segments")
    return held, answer


def test_files_that_were_chosen_while_the_example_loads_are_what_is_read(
    page: Page, site: str
) -> None:
    held, answer = files_chosen_while_the_example_loads(page, site)
    with page.expect_response("**/examples/*rank1*"):
        held.come()
    drawn(page)
    expect(page.locator("#profile[aria-busy]")).to_have_count(0)
    assert answer.count() == 1


def test_an_example_that_cannot_be_loaded_leaves_the_files_that_were_chosen_meanwhile(
    page: Page, site: str, page_errors: list[str]
) -> None:
    held, answer = files_chosen_while_the_example_loads(page, site)
    with page.expect_event("requestfailed"):
        held.fail()
    drawn(page)
    assert answer.count() == 1
    assert page.locator(".profile-messages").inner_text() == ""
    assert all("ERR_FAILED" in error for error in page_errors)
    page_errors.clear()


def test_a_large_file_is_refused_and_one_that_takes_long_keeps_nothing_waiting(
    page: Page, site: str, tmp_path: Path
) -> None:
    opened(page, site)
    many = json.dumps([kernel("gemm", 2.0 * at, 1.0) for at in range(150_000)])
    trace = tmp_path / "long.json.gz"
    trace.write_bytes(gzip.compress(many.encode(), 1))
    asked = page.get_by_label("Traces of one or several ranks")
    page.evaluate("""() => { window.frames_ = 0;
      const frame = () => { frames_ += 1; requestAnimationFrame(frame); };
      requestAnimationFrame(frame); }""")
    asked.set_input_files(str(trace))
    expect(page.locator("#profile")).to_contain_text("50.0%")
    assert page.evaluate("frames_") > 10, "a machine that reads slowly has more of them"
    page.evaluate("""() => { window.Worker = class extends EventTarget {
      postMessage() {} terminate() { window.ended = true; } } }""")
    asked.set_input_files([str(path) for path in FILES])
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".profile-progress")).to_be_hidden()
    assert page.evaluate("window.ended")
    opened(page, site)
    page.evaluate("""() => {
      const given = new DataTransfer();
      given.items.add(new File([new Uint8Array(201e6)], "huge.json"));
      const event = new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true });
      document.querySelector("#profile").dispatchEvent(event);
    }""")
    expect(page.locator(".profile-messages")).to_contain_text(
        "expected at most 200,000,000 bytes in a browser; figgen profile and figgen memory-snapshot"
    )


def test_pages_are_called_as_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [path for path, title in TITLES.items() if f"- {title}: {path}.md\n" not in nav] == []
