"""A quantity with the same inputs has one value on all pages, and different conventions
are named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from figgen.__main__ import main
from figgen.agreement import Number, compared
from figgen.agreement.manifest import numbers_of, with_quantities
from figgen.agreement.numbers import numbers
from figgen.agreement.ways import ComparedQuantity, Way, quantities
from figgen.errors import InputError
from figgen.subject import subject

ROOT = Path(__file__).parents[1]
IDLE = ComparedQuantity(
    name="idle share",
    unit="1",
    convention="of the wall time",
    ways=(
        Way(
            kind="formula",
            source="bubble_fraction",
            value="bubble_fraction",
            given={"schedule": "1f1b"},
        ),
        Way(kind="figure", source="table", value="{schedule}_idle", without=("columns",)),
        Way(
            kind="figure",
            source="line",
            value="idle",
            names={"ranks": "stages"},
            when={"unit_times": True},
        ),
        Way(
            kind="figure",
            source="step",
            value="idle",
            convention="of the slowest rank",
            words=("slowest",),
        ),
    ),
)
TABLE = Number(
    kind="figure",
    source="table",
    name="1f1b_idle",
    value=3 / 11,
    unit="1",
    where="a.md:3",
    inputs={"stages": 4, "microbatches": 8, "columns": ("idle",)},
)
LINE = Number(
    kind="figure",
    source="line",
    name="idle",
    value=3 / 11,
    unit="1",
    where="b.md:9",
    inputs={"ranks": 4, "microbatches": 8, "schedule": "1f1b", "unit_times": True},
)


def told(*shown: Number) -> list[str]:
    return [str(found) for found in compared(shown, [IDLE]).disagreements]


def shown_on(site: Path) -> Iterator[Number]:
    """Return the numbers of a built site, each with its surrounding text."""
    docs = ROOT / "docs"
    pages = {p.relative_to(docs).as_posix(): p.read_text("utf-8") for p in docs.rglob("*.md")}
    lines = {name: text.split("\n") for name, text in (pages | subject().pages(docs, {})).items()}
    for entry in json.loads((site / "figures.json").read_text("utf-8")):
        page, _, line = entry["where"].rpartition(":")
        begun = lines.get(page, [])[int(line) - 1 :] or [""]  # the glossary's stand in its table
        text = begun[0] if "call" in entry else "\n".join(begun[1:]).partition("\n```")[0]
        yield from (replace(number, text=text) for number in numbers_of(entry))


def test_all_numbers_of_the_site_agree(site_folder: Path) -> None:
    outcome = compared([*shown_on(site_folder)], quantities())
    assert [str(found) for found in outcome.disagreements] == []
    assert outcome.unused == ()
    assert outcome.identified > 4800
    assert outcome.points > 780


def test_equal_inputs_under_other_names_must_give_equal_values() -> None:
    assert told(TABLE, LINE) == []
    (one,) = told(TABLE, replace(LINE, value=0.3))
    assert one.startswith("b.md:9: idle share (of the wall time) at microbatches=8, schedule=1f1b")
    assert one.endswith("got 0.3 by line: idle")
    assert "expected 0.2727" in one


def test_a_name_that_begins_with_a_digit_is_the_same_where_it_is_part_of_another() -> None:
    table = replace(TABLE, name="one_f_one_b_idle")
    assert told(table, LINE) == []
    (one,) = told(table, replace(LINE, value=0.3))
    assert one.startswith("b.md:9: idle share")


def test_a_figure_alone_is_held_against_the_closed_form_at_its_inputs() -> None:
    (one,) = told(replace(TABLE, value=0.27))
    assert one.startswith("a.md:3: ")
    assert "as bubble_fraction says, formula bubble_fraction" in one
    outside = {**TABLE.inputs, "stages": 0}
    assert told(replace(TABLE, value=0.27, inputs=outside)) == []


def test_other_inputs_are_another_point() -> None:
    assert told(TABLE, replace(LINE, value=0.3, inputs={**LINE.inputs, "unit_times": False})) == []
    assert told(TABLE, replace(TABLE, name="zb1p_idle", value=0.1)) == []
    (one,) = told(replace(TABLE, inputs={**TABLE.inputs, "microbatches": 16}))
    assert "microbatches=16" in one


def test_a_unit_of_another_kind_is_no_value_of_the_quantity() -> None:
    assert told(replace(TABLE, unit="s")) == [
        "a.md:3: table: {schedule}_idle: expected unit 1, got s"
    ]


def test_a_step_is_the_same_however_it_was_asked_for() -> None:
    """Page 7 of the journey by its number, and written out; a different batch gives a different
    step."""
    by = {
        name: Way(kind="lookup", source=name, value=name, expansions={"step": ("time",)})
        for name in ("rung", "job")
    }
    quantity = ComparedQuantity(
        name="seconds", unit="s", convention="computed", ways=tuple(by.values())
    )
    rung = Number(
        kind="lookup",
        source="rung",
        name="rung",
        value=2.0,
        unit="s",
        where="a.md:1",
        inputs={"rung": 7},
    )
    asked = {"job": "llama-3-70b", "sizes": "nodes=8 gpus_per_node=8 tp=8 pp=2"}
    same = {**asked, "options": "zero_stage=1 sequence=8192 global_batch=512"}
    other = {**asked, "options": "zero_stage=1 sequence=8192 global_batch=256"}
    job = Number(
        kind="lookup", source="job", name="job", value=3.0, unit="s", where="b.md:2", inputs=same
    )
    (found,) = compared([rung, job], [quantity]).disagreements
    assert "model=llama-3-70b nodes=8 gpus_per_node=8 tp=8 pp=2" in found.quantity
    assert compared([rung, replace(job, inputs=other)], [quantity]).disagreements == ()


def test_a_layout_is_the_same_however_it_was_asked_for_and_not_in_another_order() -> None:
    way = Way(
        kind="figure", source="map", value="{axis:tp|pp}_groups", expansions={"layout": ("grids",)}
    )
    quantity = ComparedQuantity(
        name="groups", unit="1", convention="all", ways=(way, replace(way, source="cube"))
    )
    sizes = {"sizes": "nodes=2 gpus_per_node=8 tp=8 pp=2"}
    one = Number(
        kind="figure",
        source="map",
        name="tp_groups",
        value=2,
        unit="1",
        where="a.md:1",
        inputs={"preset": "map-16"},
    )
    two = Number(
        kind="figure",
        source="cube",
        name="tp_groups",
        value=3,
        unit="1",
        where="b.md:2",
        inputs=sizes,
    )
    assert len(compared([one, two], [quantity]).disagreements) == 1
    for other in ({"name": "pp_groups"}, {"inputs": {**sizes, "order": "pp-tp-dp"}}):
        assert compared([one, replace(two, **other)], [quantity]).disagreements == ()
    assert way.inputs(replace(one, name="dp_groups")) is None
    assert way.inputs(replace(one, inputs={"preset": "map-1"})) is None


def test_the_busiest_adapter_is_held_against_the_bytes_of_an_all_reduce() -> None:
    """For DP over four nodes with two members each: 2·7/8 of a message; two rings send half of it
    each."""
    ours = [found for found in quantities() if "busiest adapter" in found.name]
    inputs = {"sizes": "nodes=4 gpus_per_node=8 tp=4", "message_bytes": 8e9}
    for name, sent in (("dp_nic_bytes", 14e9), ("dp_shared_nic_bytes", 7e9)):
        right = Number(
            kind="figure",
            source="node-crossings",
            name=name,
            value=sent,
            unit="B",
            where="a.md:1",
            inputs=inputs,
        )
        outcome = compared([right], ours)
        assert (outcome.points, outcome.disagreements) == (1, ())
        assert len(compared([replace(right, value=sent / 2)], ours).disagreements) == 1
    inside = Number(
        kind="figure",
        source="node-crossings",
        name="tp_nic_bytes",
        value=0.0,
        unit="B",
        where="a.md:1",
        inputs=inputs,
    )
    assert compared([inside], ours).identified == 0


def test_another_convention_is_named_where_it_is_shown() -> None:
    given = {"stages": 4, "microbatches": 8, "schedule": "1f1b"}
    other = Number(
        kind="figure", source="step", name="idle", value=0.3, unit="1", where="c.md:1", inputs=given
    )
    (one,) = told(TABLE, other)
    assert one == (
        "c.md:1: idle share, not of the wall time but of the slowest rank:"
        " expected “slowest” in its text, got no such word"
    )
    assert told(TABLE, replace(other, text="alt: of the slowest rank")) == []


def test_numbers_in_sentences_tables_and_captions_are_read_and_code_is_not() -> None:
    page = (
        "A {{ bubble_fraction(stages=4, microbatches=8):.1% }} and `{{ not_this() }}`.\n\n"
        '| {{ model("llama-3-8b").parameters:si }} |\n\n```\n{{ nor_this() }}\n```\n\n'
        "```figure\nfigure: pipeline-timeline\nschedule: 1f1b\nstages: 4\nmicrobatches: 8\n"
        "caption: One.\nalt: Two.\n```\n"
    )
    found = [one for one in numbers("page.md", page) if isinstance(one, Number)]
    assert [(n.kind, n.source, n.where) for n in found[:2]] == [
        ("formula", "bubble_fraction", "page.md:1"),
        ("lookup", "model.parameters", "page.md:3"),
    ]
    assert found[0].inputs == {"stages": 4, "microbatches": 8}
    assert found[1].inputs == {"model": "llama-3-8b"}
    assert {n.where for n in found[2:]} == {"page.md:9"}
    assert {n.name: n.value for n in found[2:]}["bubble_fraction"] == found[0].value


FAILING = """# T

It is {{ bubble_fraction(stages=0, microbatches=8):.1% }}.

```figure
figure: pipeline-timeline
schedule: 1f1b
stages: 3
microbatches: no
caption: One.
alt: Two.
```
"""


def test_numbers_and_figures_that_fail_are_named_with_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = SimpleNamespace(pages=lambda docs, terms: {})  # generating the others takes seconds
    monkeypatch.setattr("figgen.agreement.numbers.subject", lambda: without)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(FAILING, "utf-8")
    number, figure = numbers("page.md", FAILING)
    assert str(number).startswith("page.md:3: ")
    assert str(figure).startswith("page.md:5: figure 'pipeline-timeline': microbatches: expected")
    assert main(["agree", str(tmp_path / "docs")]) == 1
    told = capsys.readouterr().out
    assert f"docs/{number}\n" in told
    assert f"docs/{figure}\n" in told
    assert "2 not computed" in told


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('{ formula = "bubble_fracton" }', "unknown formula of idle.*bubble_fraction"),
        ('{ figure = "a", value = "b", witout = ["c"] }', "unknown key.*without"),
        ('{ value = "b" }', "expected one of formula, lookup, figure"),
    ],
)
def test_a_mistake_in_the_table_is_told(tmp_path: Path, entry: str, message: str) -> None:
    table = tmp_path / "quantities.toml"
    table.write_text(f'[idle]\nunit = "1"\nconvention = "all"\nways = [{entry}]\n')
    with pytest.raises(InputError, match=message):
        quantities(table)


def test_every_number_of_the_manifest_knows_what_it_is(site_folder: Path) -> None:
    entries = json.loads((site_folder / "figures.json").read_text("utf-8"))
    assert len(entries) > 1300
    kinds: Counter[str] = Counter()
    for entry in entries:
        assert entry["inputs"] or not entry.get("arguments"), entry["where"]
        if "call" in entry:
            assert entry["quantity"], entry["where"]
            assert entry["convention"], entry["where"]
            kinds["in sentences"] += 1
            continue
        assert entry["quantities"].keys() == entry["values"].keys()
        for known in entry["quantities"].values():
            assert known["quantity"]
            assert known["convention"]
            kinds["shared" if "inputs" in known else "own"] += 1
    assert kinds["in sentences"] > 800
    assert kinds["shared"] > 3500


def test_the_manifest_names_the_quantity_in_the_table() -> None:
    entry = {
        "figure": "pipeline-timeline",
        "where": "a.md:1",
        "values": {"bubble_fraction": (0.27, "1")},
        "inputs": {
            **{"schedule": "1f1b", "stages": 4, "microbatches": 8},
            **{"forward": 1.0, "backward": 2.0},
        },
    }
    (known,) = with_quantities([entry])
    assert known["quantities"]["bubble_fraction"] == {
        "quantity": "idle share",
        "convention": "of the wall time, stages alike, no latency",
        "inputs": {"schedule": "1f1b", "stages": 4, "microbatches": 8},
    }
