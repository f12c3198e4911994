"""Any text that an author types gives the declared error or a page, with nothing
unescaped in it."""

from __future__ import annotations

import contextlib
import re

import markdown
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from figgen.errors import InputError
from figgen.markdown import FiggenExtension
from figgen.markdown.directive import parse as parse_directive
from figgen.markdown.math import mathml
from figgen.values import compute

MARKUP = st.sampled_from(["<script>", "</figure>", '"', "'", "&", "{{", "}}", "`", "\\", ":", "\n"])
TEXT = st.text(max_size=60) | st.lists(MARKUP | st.text(max_size=8), max_size=8).map("".join)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
KEYS = st.sampled_from(["figure", "id", "caption", "alt", "as", "presets", "stages", "schedule"])
NAMES = st.sampled_from(["bubble_fraction", "ring_all_reduce_time", "model", "schedule", "x"])
SPECS = st.sampled_from([".1%", "si", "bytes", "time", ">1000000", "99999d", "", "{", "gib", "!r"])


@given(TEXT | st.dictionaries(KEYS | TEXT, SCALAR | st.lists(SCALAR, max_size=3)).map(yaml.dump))
@example("figure: &a [*a]")
@example("figure: !!python/object/apply:os.system ['true']")
@example("? [a]: b")
@example("- [" * 200)
@example("caption: 2001-99-99")
def test_a_fence_body_is_read_or_refused_with_the_declared_error(body):
    with contextlib.suppress(InputError):
        parse_directive(body)


@st.composite
def calls(draw):
    arguments = draw(st.dictionaries(st.sampled_from(["stages", "microbatches", "q"]), SCALAR))
    body = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{draw(NAMES)}({body}):{draw(SPECS)}"


@given(TEXT | calls())
@example("(" * 199)
@example("bubble_fraction(stages=" + "9" * 300 + ", microbatches=1)")
@example("bubble_fraction(stages=1e308, microbatches=1e308)")
@example("bubble_fraction(**{'stages': 4})")
@example("bubble_fraction(stages=4, stages=4)")
@example("schedule('1f1b', stages=10**9, microbatches=1).makespan")
@example("schedule('1f1b', stages=4, microbatches=8).__class__")
@example("model('gpt-3').__doc__")
def test_an_inline_value_is_computed_or_refused_with_the_declared_error(text):
    with contextlib.suppress(InputError):
        computed, spec = compute(text)
        assert isinstance(computed.text(spec), str)


@given(TEXT)
@settings(max_examples=60)
def test_math_is_converted_or_refused_and_never_carries_markup(tex):
    try:
        markup = mathml(tex)
    except InputError:
        return
    assert not re.search(r"<(?!/?m|/?math)", markup), markup


@given(
    st.fixed_dictionaries({"caption": TEXT, "alt": TEXT}, optional={"id": TEXT, "stages": SCALAR}),
    TEXT,
)
@settings(max_examples=60)
def test_a_page_with_any_caption_and_any_value_has_no_markup_of_theirs(fields, value):
    body = yaml.dump({"figure": "pipeline-timeline", "schedule": "gpipe", **fields})
    value = value.replace("<", "").replace("`", "").replace("\n", " ")
    html = markdown.markdown(
        f"```figure\n{body}```\n\n{{{{ {value} }}}}", extensions=[FiggenExtension()]
    )

    assert "<script" not in html
    assert html.count("<figure") == html.count("</figure>")
