"""Figure fences: what a page gets, and which errors its author sees."""

from __future__ import annotations

import re
import shlex

import pytest

from figgen.catalog import residuals
from figgen.commands.figures import _parameter
from figgen.errors import InputError
from figgen.markdown.directive import line_of_key, parse
from figgen.markdown.figure import command_of

FENCE = """\
Text before.

```figure
figure: pipeline-timeline
schedule: 1f1b
stages: 4
microbatches: 8
caption: "Idle: {{ bubble_fraction:.1%}} of *the* wall."
alt: "Four lanes, {{ bubble_fraction:.1%}} idle."
```

See [](#fig-pipeline-timeline).
"""


def changed(**replacements: str | None) -> str:
    """Return the fence with lines replaced, added, or (for None) removed."""
    lines = FENCE.splitlines()
    for key, value in replacements.items():
        at = next((i for i, line in enumerate(lines) if line.startswith(f"{key}:")), None)
        new = [] if value is None else [f"{key}: {value}"]
        lines[at : at + 1 if at is not None else None] = new if at is not None else lines[at:]
        if at is None:
            lines.insert(4, new[0])
    return "\n".join(lines)


def test_a_fence_becomes_a_labelled_figure_with_its_data(convert):
    html, problems, _, page = convert(FENCE)

    assert problems == []
    assert '<figure class="figgen" id="fig-pipeline-timeline">' in html
    assert 'role="img" aria-label="Four lanes, 27.3' in html
    assert re.search(r'Idle: <data value="0\.27272\d+">27\.3%</data> of <em>the</em> wall\.', html)
    (data,) = (page.assets[path].make() for path in page.assets if path.endswith(".html"))
    assert data.count("<tr>") == 1 + 4 * 8 * 2  # too long for the page that offers it
    assert "<title>Figure 3.1, data</title>" in data
    assert html.count("<summary>") == html.count("<summary>Data, files and citation</summary>") == 1
    assert '<p class="fig-cite">' in html


def test_a_caption_names_the_figure_that_it_refers_to_and_reports_one_that_is_none(convert):
    html, problems, _, _ = convert(changed(caption='"See [](#fig-pipeline-timeline)."'))
    assert problems == []
    assert '<a href="#fig-pipeline-timeline">Figure 3.1</a>.</figcaption>' in html
    _, problems, _, _ = convert(changed(caption='"See [](#fig-pipeline)."'))
    assert "fig-pipeline-timeline" in problems[0].message


@pytest.mark.parametrize("link", ["[](b.md#fig-x)", "[there](../journey/b.md)"])
def test_a_caption_with_a_link_to_a_source_that_mkdocs_would_not_see_is_reported(convert, link):
    html, problems, _, _ = convert(
        changed(caption=f'"See {link}."'), numbers={"guide/b.md": {"x": "Figure 3.9"}}
    )
    target = link.split("(")[1].rstrip(")")
    assert [(problem.line, problem.message) for problem in problems] == [
        (
            8,
            "link in a caption: expected an anchor on the same page, such as #fig-name, "
            f"or an absolute URL, got {target!r}",
        )
    ]
    assert "Figure 3.9" not in html
    _, problems, _, _ = convert(changed(caption='"See [](https://example.org/a.md)."'))
    assert problems == []


STEP = """\
```figure
figure: step-breakdown
preset: bloom-176b
caption: "A step takes {{ step_time:time }}."
alt: "Two bars."
```

See [](#fig-step-breakdown).
"""


def test_a_predicted_time_ends_its_caption_with_the_interval_of_its_class(convert):
    known = residuals("Megatron on Ampere, dense")
    html, problems, _, _ = convert(STEP)
    assert problems == []
    caption = re.sub("<[^>]+>", "", html[html.index("<figcaption>") : html.index("</figcaption>")])
    interval = f"80% of real runs take {known.low:.2f} to {known.high:.2f} times as long"
    assert f"{interval} (Megatron on Ampere, dense)" in caption


def test_a_time_for_a_chosen_share_of_the_peak_is_no_prediction(convert):
    chosen = STEP.replace("caption:", "options: compute_efficiency=0.5\ncaption:")
    html, problems, _, _ = convert(chosen)
    assert problems == []
    assert "Predicted times" not in html


def test_a_reference_to_a_figure_becomes_its_number(convert):
    html = convert(FENCE).html

    assert '<a href="#fig-pipeline-timeline">Figure 3.1</a>' in html


def test_a_reference_to_a_figure_of_another_page_is_told_where_it_is(convert):
    numbers = {"journey/b.md": {"elsewhere": "Figure 9.1"}}
    found = convert("text [](#fig-elsewhere)", numbers=numbers).problems
    assert [problem.message for problem in found] == [
        "unknown figure 'fig-elsewhere' (did you mean ../journey/b.md#fig-elsewhere?)"
    ]
    assert convert("[](#fig-nowhere)").problems[0].message == "unknown figure 'fig-nowhere'"


def test_a_reference_before_the_figure_is_filled_too(convert):
    html, problems, _, _ = convert("First [](#fig-pipeline-timeline).\n\n" + FENCE)

    assert problems == []
    assert html.index("Figure 3.1") < html.index("<figure")


def test_downloads_are_registered_and_linked_relative_to_the_page(convert):
    html, _, _, page = convert(FENCE)

    stem = "assets/figures/guide/page/fig-pipeline-timeline"
    kinds = ("svg", "csv", "json", "html", "plotly.json")
    assert set(page.assets) == {f"{stem}.{kind}" for kind in kinds}
    assert f'<a class="fig-late" href="../../{stem}.html">' in html
    assert f'href="../../{stem}.csv"' in html
    assert page.assets[f"{stem}.svg"].make().startswith("<svg")


def test_the_manifest_entry_tells_where_and_what(convert):
    entry = convert(FENCE).page.entries[-1]

    assert entry["where"] == "guide/page.md:4"
    assert entry["values"]["makespan"] == [33.0, "1"]


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (
            {"figure": "pipeline-timline"},
            4,
            "unknown figure 'pipeline-timline' (did you mean pipel",
        ),
        ({"stages": "0"}, 6, "figure 'pipeline-timeline': stages of schedule"),
        ({"stages": "-4"}, 6, "stages of schedule '1f1b': expected an integer ≥ 1, got -4"),
        ({"stages": "four"}, 6, "stages: expected an integer, got 'four'"),
        ({"stages": "true"}, 6, "stages: expected an integer, got True"),
        ({"stagse": "4"}, 5, "unknown parameter 'stagse' (did you mean stages"),
        ({"schedule": "1f2b"}, 5, "unknown schedule '1f2b' (did you mean 1f1b"),
        ({"schedule": None}, 4, "parameter 'schedule' is missing"),
        ({"alt": None}, 4, "'alt' is missing"),
        ({"caption": None}, 4, "'caption' is missing"),
        ({"alt": '" "'}, 4, "'alt' is missing"),
        ({"as": "png"}, 4, "as: expected one of svg, plotly, text, got 'png'"),
        ({"id": "Nope!"}, 4, "id: expected lower-case words joined by -, got 'Nope!'"),
        ({"caption": '"{{ bubble:.1%}}"'}, 4, "unknown value of this figure 'bubble'"),
        ({"caption": '"{{ makespan:.1q}}"'}, 4, "format"),
        ({"alt": "a: b: c"}, 9, "malformed YAML in line 6 of the figure"),
        ({"stages": "4\n  chunks: 2"}, 7, "malformed YAML in line 4 of the figure"),
        ({"stages": "4\nstages: 8"}, 6, "duplicate key 'stages'"),
        ({"presets": "map-8"}, 4, "presets: expected a list of names, got 'map-8'"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_shown_in_red(convert, change, line, message):
    html, problems, _, _ = convert(changed(**change))
    problem = next(p for p in problems if message in p.message)

    assert problem.path == "guide/page.md"
    assert problem.line == line or (line == 4 and problem.line >= 4)
    assert "figgen-error" in html
    assert "<figure" not in html


def test_two_figures_with_one_id_are_refused_at_the_second(convert):
    problems = convert(FENCE + "\n" + FENCE).problems

    assert [p.line for p in problems if "have the id" in p.message] == [17]


def test_a_fence_with_options_is_refused_because_it_would_be_printed(convert):
    problems = convert("```figure stages=4\nfigure: pipeline-timeline\n```\n").problems

    assert "a figure fence: expected ```figure alone" in problems[0].message
    assert problems[0].line == 1


def test_a_fence_shown_as_code_is_left_alone(convert):
    html, problems, _, _ = convert("````md\n" + FENCE + "````\n")

    assert problems == []
    assert "<figure" not in html


@pytest.mark.parametrize("wrapper", ["admonition", "pymdownx.details"])
def test_a_fence_works_inside_an_admonition(convert, wrapper):
    mark = "!!!" if wrapper == "admonition" else "???"
    inner = "\n".join(f"    {line}" for line in FENCE.splitlines())
    html, problems, _, _ = convert(f'{mark} note "Title"\n\n{inner}\n', (wrapper,))

    assert problems == []
    assert "<figure" in html


def test_hostile_texts_are_escaped(convert):
    evil = '"<script>alert(1)</script> \\"><img src=x onerror=alert(2)>"'
    html = convert(changed(caption=evil, alt=evil)).html

    assert "<script" not in html
    assert "<img" not in html


def test_a_key_written_twice_is_refused():
    with pytest.raises(InputError, match="duplicate key 'stages'"):
        parse("figure: pipeline-timeline\nstages: 4\nstages: 8\n")


def test_all_faults_of_one_figure_are_told_at_once_on_their_lines(convert):
    source = changed(stages="-1 GB", schedul="1f1b", caption=None).replace("as:", "as:")
    told = [str(problem).split(": ", 1) for problem in convert(source).problems]

    lines = source.splitlines()
    at = {
        key: 1 + next(n for n, line in enumerate(lines) if line.startswith(f"{key}:"))
        for key in ("figure", "stages", "schedul")
    }
    named = "figure 'pipeline-timeline': "
    assert sorted((int(place.split(":")[1]), what) for place, what in told) == sorted(
        [
            (at["figure"], f"{named}'caption' is missing: expected caption: a sentence"),
            (at["schedul"], f"{named}unknown parameter 'schedul' (did you mean schedule?)"),
            (at["stages"], f"{named}stages: expected an integer, got '-1 GB'"),
        ]
    )


@pytest.mark.parametrize(
    ("body", "line", "hint"),
    [
        ("figure: x\n schedule: 1f1b\nalt: a", 2, "begin every key in the same column"),
        ("figure: x\nalt: a\n  stages: 4", 3, "begin every key in the same column"),
        (" figure: x\nalt: a", 2, "begin every key in the same column"),
        ("figure: x\n\tstages: 4", 2, "indent with spaces, not with tabs"),
        ("figure: x\nsizes: [1, 2\nalt: a", 3, "close the list with ]"),
        ('figure: x\nalt: "a', 2, "close the quotation mark"),
        ("figure: x\ncaption: Idle: half", 2, "quote text that contains ': '"),
        ("figure: x\ncaption: Idle\n  for long: half", 3, "quote text that contains ': '"),
        ("figure: x\ncaption: {{ a }} of b", 2, "starts with '{'"),
    ],
)
def test_yaml_that_cannot_be_read_blames_what_is_wrong(body, line, hint):
    with pytest.raises(InputError, match=f"malformed YAML in line {line} of") as raised:
        parse(body)
    assert hint in str(raised.value)
    named = re.match(r" *[a-z]+:", body.splitlines()[line - 1])
    assert line_of_key(body, raised.value.key) == (line - 1 if named else 0)


def test_a_bug_in_a_figure_or_a_formula_is_told_with_its_line_of_code(convert, monkeypatch):
    from figgen.models.pipeline import schedules
    from figgen.renderers import svg

    def broken(*_, **__):
        raise KeyError("here")

    monkeypatch.setattr(svg, "render", broken)
    (drawn,) = convert(FENCE).problems
    assert re.search(r"KeyError while drawing .*\(figgen/pictures\.py:\d+\)", str(drawn))
    monkeypatch.setattr(schedules, "build", broken)
    (computed, *_) = convert('{{ schedule("1f1b", stages=4, microbatches=8).makespan }}').problems
    assert re.search(r"KeyError while computing .*\(figgen/guide/lookups\.py:\d+\)", str(computed))


def test_a_line_of_a_text_that_begins_like_a_key_is_not_blamed() -> None:
    body = "figure: x\ncaption: |\n  Four\n  stages: so many.\nstages: 0\noptions:\n  tp: 0\n"
    assert [line_of_key(body, key) for key in ("stages", "tp", "pp")] == [4, 6, 0]


@pytest.mark.parametrize(
    ("figure", "given"),
    [
        ("pipeline-timeline", {"schedule": "1f1b", "stages": 4, "microbatches": 8}),
        ("bubble-curves", {"stages": [4, 8], "chunks": [1, 2]}),
        ("rank-grid", {"order": "", "sizes": "tp=2 pp=4", "first": "pp"}),
        ("x", {"text": "1e3", "other": "010", "clock": "1:30", "quote": "it's {a}: b", "no": None}),
        ("x", {"share": 0.1, "large": 1e20, "small": 1e-9, "yes": True, "deep": [["a", 1], []]}),
    ],
)
def test_the_command_in_a_citation_gives_the_figure_its_arguments(figure, given):
    words = shlex.split(command_of(figure, given))
    assert words[:3] == ["figgen", "show", figure]
    assert dict(map(_parameter, words[3:])) == given


def test_a_citation_names_the_inputs_and_the_address(convert):
    html, _, _, _ = convert(FENCE)
    assert (
        "Figure 3.1. Computed with <code>figgen show pipeline-timeline schedule=1f1b stages=4 "
        "microbatches=8</code>. <a"
    ) in html
