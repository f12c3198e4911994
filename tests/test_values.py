"""Numbers by name, as pages and the command line request them."""

from __future__ import annotations

import pytest

from figgen.charts import Named
from figgen.errors import InputError
from figgen.values import Call, compute, parse, split_spec


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("f(x=1):.1%", ("f(x=1)", ".1%")),
        ("f(x=1)", ("f(x=1)", "")),
        ('f(x="a:b"):si', ('f(x="a:b")', "si")),
        ("f(x=[1,2]): time ", ("f(x=[1,2])", "time")),
        ("f(x='\"'):,", ("f(x='\"')", ",")),
    ],
)
def test_the_spec_begins_at_the_first_colon_outside_brackets_and_quotes(text, parts):
    assert split_spec(text) == parts


def test_a_call_is_read_with_its_arguments_and_field():
    assert parse('schedule("1f1b", stages=4, microbatches=-8).makespan') == Call(
        name="schedule",
        positional=("1f1b",),
        keywords=(("stages", 4), ("microbatches", -8)),
        field="makespan",
    )


def test_a_call_may_be_an_argument():
    ridge = "ridge_point(peak_flops_per_s=accelerator('h100-sxm-80gb').bf16, "
    ridge += "bandwidth_bytes_per_s=link('nvlink4').bandwidth)"

    assert compute(ridge)[0].value == pytest.approx(2198.6667, rel=1e-6)


def test_a_simulated_value_equals_the_closed_form():
    simulated = compute('schedule("1f1b", stages=4, microbatches=8).bubble_fraction')[0].value

    assert simulated == pytest.approx(compute("bubble_fraction(stages=4, microbatches=8)")[0].value)


def test_a_catalog_value_carries_unit_and_source():
    bandwidth = compute('link("ib-ndr").bandwidth')[0]

    assert (bandwidth.value, bandwidth.unit) == (50e9, "B/s")
    assert bandwidth.source


def test_a_value_that_sources_disagree_on_is_shown_with_its_range():
    assert "(13.1" in compute('accelerator("b300-sxm-hgx").fp4')[0].text("si")


def test_a_bare_name_is_a_value_of_the_figure_and_of_nothing_else():
    assert compute("peak:.0f", {"peak": Named(4.0)})[0].text(".0f") == "4"
    with pytest.raises(InputError, match=r"unknown value of this figure 'peek'.*peak"):
        compute("peek", {"peak": Named(4.0)})
    with pytest.raises(InputError, match="cannot read"):
        compute("peak")


def test_a_value_that_is_looked_up_knows_all_that_it_was_asked():
    """A job without its options used to count as the same as any other job of its sizes."""
    job = 'job("llama-3-1b", "nodes=1 gpus_per_node=1", "sequence=8192").gpus'
    (found, _) = compute(job)
    sizes, options = "nodes=1 gpus_per_node=1", "sequence=8192"
    assert found.inputs == {"job": "llama-3-1b", "sizes": sizes, "options": options}


@pytest.mark.parametrize(
    "text",
    [
        "f",
        "f().g.h",
        "f()()",
        "f(x)",
        "f(*a)",
        "f(**a)",
        "f(x=1) + 1",
        "x.f()",
        "f(x=lambda: 0)",
        "f(x=[y for y in z])",
        "f(x=b'bytes')",
        "f(x=1j)",
        "f(x=...)",
        "(f)(1)(2)",
        "f(" * 90,
        "\0",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(InputError):
        compute(text)
