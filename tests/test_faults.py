"""Builds under adverse conditions: hostile text, a full disk, a killed process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import Markdown

from figgen import cache
from figgen.catalog import load
from figgen.entries.read import parse_file
from figgen.errors import InputError
from figgen.publish.begin import begin_build
from figgen.publish.build import SiteBuild
from figgen.registry import FIGURES, build
from tests.pages import BUBBLES

FIGURE = BUBBLES.replace("A table.", "{alt}")


def converted(folder: Path, source: str) -> tuple[SiteBuild, str]:
    edition = begin_build(folder, folder / "cache", "Site", "http://127.0.0.1/")
    edition.scan([("page.md", "1", source)])
    options = {"site": edition.site, "page": edition.page("page.md", "page/", source)}
    md = Markdown(extensions=["figgen"], extension_configs={"figgen": options})
    html = md.convert(source)
    edition.close(print)
    return edition, edition.fill("page.md", html)


@pytest.mark.parametrize("typed", ["<!--figgen:0-->", "<!--figgen:99999-->", "<!--figgen::0-->"])
def test_a_comment_like_ours_stays_a_comment(typed: str, tmp_path: Path) -> None:
    edition, html = converted(tmp_path, f"{typed}\n\n{FIGURE.format(alt='A table.')}\n\n{typed}\n")
    assert html.count(typed) == 2
    assert html.count("<table") == 1
    assert edition.problems == []


@pytest.mark.parametrize("alt", [r'"\x02klzzwxh:0\x03"', r'"\x00"', r'"a\x1b[31mb"'])
def test_characters_that_nobody_can_print_are_refused(alt: str, tmp_path: Path) -> None:
    edition, _ = converted(tmp_path, FIGURE.format(alt=alt))
    (problem,) = edition.problems
    assert "alt: expected characters that can be printed" in problem.message


def test_a_list_without_end_is_refused(tmp_path: Path) -> None:
    many = FIGURE.replace("[4, 8]", str([4] * 300)).format(alt="A table.")
    edition, _ = converted(tmp_path, many)
    (problem,) = edition.problems
    assert problem.message == "stages: expected at most 256 items, got 300"


def malformed(rng: random.Random) -> str:
    """Return figures with one mistake each, of every kind that authors make."""
    sound = FIGURE.format(alt="A table.")
    number = rng.randrange(10**6)
    return rng.choice([
        sound.replace("figure: ", f"figure: no-{number}-"),
        sound.replace("figure\n", "figurre\n"),
        sound.replace("stages: [4, 8]", f"stages: [{-number}, 8]"),
        sound.replace("stages", f"stagez{number}"),
        sound.replace("caption: ", f"caption: a: b: {number}"),
        sound.replace("alt: A table.", "alt:"),
        sound.replace("alt: A table.", f"chunks: {number}"),
        sound.replace("microbatches: [8, 8]", f"microbatches: [{'8, ' * 300}]"),
        sound.replace("chunks: [1, 1]", f"chunks: [1, [{number}"),
        sound.replace("[4, 8]", f"&a [*a, {number}]"),
    ])  # fmt: skip


def test_a_thousand_malformed_figures_are_told_each_with_its_line_and_lose_nothing(
    tmp_path: Path,
) -> None:
    rng = random.Random(11)
    wrong = [malformed(rng) for _ in range(1000)]
    sound = FIGURE.format(alt="A table.\nid: sound")
    source = "\n".join([*wrong[:500], sound, *wrong[500:]])
    edition, html = converted(tmp_path, source)
    lines = source.splitlines()
    begins = [n for n, line in enumerate(lines, 1) if line.startswith("```figur")]
    of = {max(begin for begin in begins if begin <= p.line) for p in edition.problems}
    assert sorted(of) == [begin for at, begin in enumerate(begins) if at != 500]
    assert html.count("<figure") == 1
    boxes = html.count("figgen-error")
    assert boxes + sum(text.startswith("```figurre") for text in wrong) == 1000


def unwritable(folder: Path, how: str) -> Path:
    """A cache folder that cannot be written to."""
    if how == "is a file":
        folder.write_text("")
    elif how == "has folders for keys":
        folder.mkdir()
    return folder


@pytest.mark.parametrize("how", ["is a file", "has folders for keys"])
def test_a_cache_that_takes_nothing_makes_a_build_slower_and_nothing_else(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unwritable(tmp_path / "cache", how)
    if how == "has folders for keys":
        write = cache._write

        def spoilt(where: Path, key: str, picture: str) -> None:
            (where / key).mkdir(parents=True, exist_ok=True)
            write(where, key, picture)

        monkeypatch.setattr(cache, "_write", spoilt)
    page = FIGURE.format(alt="A table.")
    edition = begin_build(tmp_path, folder, "Site", "http://127.0.0.1/")
    edition.scan([("page.md", "1", page)])
    options = {"site": edition.site, "page": edition.page("page.md", "page/", page)}
    html = Markdown(extensions=["figgen"], extension_configs={"figgen": options}).convert(page)
    edition.close(print)
    assert "<table" in edition.fill("page.md", html)
    assert edition.problems == []


def test_a_full_disk_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.write(tmp_path, "key", "picture")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "links.toml cannot be read: No such file or directory"),
        (b"\xff\xfe", "links.toml is not UTF-8 text: byte 0, got 255"),
    ],
)
def test_a_catalog_file_that_cannot_be_read_is_named(
    content: bytes | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "links.toml").write_bytes(content)
    monkeypatch.setattr(load, "FOLDER", tmp_path)
    with pytest.raises(InputError) as refused:
        load.content("links.toml")
    assert str(refused.value) == said


def test_a_byte_order_mark_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "links.toml").write_bytes(b"\xef\xbb\xbf[a]\n")
    monkeypatch.setattr(load, "FOLDER", tmp_path)
    assert load.content("links.toml") == "[a]\n"


def test_an_emptied_catalog_file_is_named() -> None:
    with pytest.raises(InputError, match=r"links\.toml is empty: expected at least one entry"):
        parse_file("links.toml", "# nothing\n")


@pytest.mark.parametrize("words", [["list", "models"], ["step"]], ids=["asked", "in the help"])
def test_a_fault_in_the_catalog_is_one_line_of_what_reads_it(
    tmp_path: Path, words: list[str]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path; from figgen.catalog import load; "
         "load.FOLDER = Path('/nowhere'); from figgen.__main__ import main; "
         f"raise SystemExit(main({words}))"],
        capture_output=True, text=True, cwd=tmp_path, timeout=30,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "cannot be read" in ran.stderr


def test_heads_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(InputError, match="tp: expected a divisor of 4 key and value heads, got 8"):
        build("tp-identity", {"tp": 8})


@pytest.mark.parametrize("name", ["scaling", "scaling-breaks"])
def test_a_batch_that_many_gpus_cannot_share_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="batch: expected one that 16,384 accelerators can share"):
        build(name, {"batch": 2049})


def extremes(default: object) -> list[object]:
    """Return values of the parameter's type that no reader would give but an attacker might."""
    if isinstance(default, bool):
        return []
    if isinstance(default, int):
        return [10**15, 0]
    if isinstance(default, float):
        return [1e15, 0.0]
    if isinstance(default, tuple) and default and isinstance(default[0], int | float):
        return [[10**15] * len(default), [0] * len(default)]
    return []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_figure_answers_or_refuses_extremes_at_once() -> None:
    import figgen.figures  # noqa: F401  registers them

    def too_long(*_: object) -> None:
        raise TimeoutError

    old = signal.signal(signal.SIGPROF, too_long)  # of the processor's time, whoever else has it
    failed = []
    try:
        for name, figure in FIGURES.items():
            for parameter in figure.parameters:
                for value in extremes(parameter.default):
                    signal.setitimer(signal.ITIMER_PROF, 20)
                    try:
                        build(name, {parameter.name: value})
                    except InputError:
                        pass
                    except Exception as error:
                        failed.append(f"{name} {parameter.name}={value}: {error!r}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
    assert failed == []
