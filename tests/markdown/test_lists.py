"""Glossary and references: mistakes are reported with their line, all of them at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.markdown.lists import REFERENCE, TERM, read_list
from figgen.prose.rules import lint_folder
from figgen.publish.begin import begin_build

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[rank]\nmeens = "A process."\n',
            "glossary.toml:2: [rank] meens: unknown key (did you "
            "mean means?)\nglossary.toml:1: [rank] means: missing: expected text",
        ),
        (
            '["world size"]\nmeans = "All."\n\n[b]\nmeans = 3\nalso = "c"\n',
            "glossary.toml:5: [b] "
            "means: a value: expected text, got 3\nglossary.toml:6: [b] also: a value: expected "
            "a list of strings, got 'c'",
        ),
        ('means = "x"\n', "glossary.toml: [means]: a value outside any entry: expected a table"),
        ("a", "glossary.toml: not TOML: Expected '=' after a key"),
    ],
)
def test_a_slip_in_the_glossary_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "glossary.toml").write_text(text)
    with pytest.raises(InputError) as told:
        begin_build(tmp_path, tmp_path / "cache", "Site", "https://x/")
    assert str(told.value).startswith(said)


def test_a_slip_in_the_glossary_is_told_by_the_linter_too(tmp_path: Path) -> None:
    """The linter used to end in a traceback, or to report that every page follows the rules."""
    (tmp_path / "glossary.toml").write_text('[a]\nmeans = "b"\nnever = "abc"\n')
    with pytest.raises(
        InputError, match=r"glossary\.toml:3: \[a\] never: a value: expected a list"
    ):
        lint_folder(tmp_path)


def test_a_reference_leads_to_no_script(tmp_path: Path) -> None:
    """Browsers run `javascript:` when someone opens the link."""
    shutil.copy(DOCS / "references.toml", tmp_path)
    path = tmp_path / "references.toml"
    begin = path.read_text("utf-8").count("\n")
    with path.open("a", encoding="utf-8") as file:
        file.write('[x]\ntitle = "T"\nauthors = "A"\nurl = "javascript:alert(1)"\n')
    with pytest.raises(InputError, match=rf"references\.toml:{begin + 4}: \[x\] url: not an addr"):
        read_list(path, REFERENCE, "title", "authors")


def test_the_guides_own_are_sound_and_another_encoding_is_named(tmp_path: Path) -> None:
    assert len(read_list(DOCS / "glossary.toml", TERM, "means")) > 90
    (tmp_path / "glossary.toml").write_bytes(b'[a]\nmeans = "\xe9"\n')
    with pytest.raises(InputError, match=r"glossary\.toml: not TOML: 'utf-8' codec"):
        read_list(tmp_path / "glossary.toml", TERM, "means")
