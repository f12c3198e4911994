"""Any input leads to an answer and status 0, or to one line and status 2, and nothing else.

Words are drawn from those that each verb knows and from typos, so that many calls get past the
first check. Sizes that no machine has must be refused, or answered as fast as others.
"""

from __future__ import annotations

import contextlib
import io
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

import figgen.figures  # noqa: F401  registers them
from figgen.__main__ import main
from figgen.catalog import LINKS, MODELS, RUNS
from figgen.formulas import FORMULAS
from figgen.models.collectives import CONTRACTS, TRACES
from figgen.models.machine.frameworks import CONVENTIONS
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.registry import FIGURES
from tests.thorough import drawn

NUMBERS = ["0", "1", "2", "3", "4", "8", "16", "64", "1024"]
ABSURD = [
    "", "-1", "1.5", "nan", "inf", "1e308", "10**9", "1000000000", "9" * 30, "9" * 5000, "1e999",
    "1e999999999 B", "abc", "é", "a\nb", "\udcff", "null", "[]", "[1000000000]", "{a: 1}",
    "&a [*a]", "[" * 300, "2001-13-45", "!!python/object:os.system x", "-5 GB", "1 GX", "--",
    "-", "=", "%s",
]  # fmt: skip


def words(*known: str) -> st.SearchStrategy[str]:
    """Return words that a verb knows, and sometimes nonsense."""
    return st.integers(0, 9).flatmap(
        lambda roll: (
            st.sampled_from(known) if roll else st.sampled_from(ABSURD) | st.text(max_size=6)
        )
    )


def call(
    *parts: st.SearchStrategy[str] | str, **options: st.SearchStrategy[str]
) -> st.SearchStrategy:
    """Return a verb with its positional words and some of its options."""
    fixed = st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts))
    chosen = st.fixed_dictionaries({}, optional=options)
    return st.tuples(fixed, chosen, st.booleans()).map(
        lambda drawn: [
            *drawn[0],
            *(
                text
                for name, value in drawn[1].items()
                for text in ("--" + name.replace("_", "-"), value)
            ),
            *(["--json"] if drawn[2] else []),
        ]
    )


SIZE = words(*NUMBERS)
ALGORITHMS = sorted({algorithm for _, algorithm in TRACES} | {"recursive-halving-doubling"})
AXES = dict.fromkeys(("cp", "pp", "ep", "etp"), SIZE)
RATES = words("450 GB/s", "1 GB/s", "1 µs")
CALLS = st.one_of(
    call("list", words("figures", "formulas", "presets", "models", "accelerators", "runs")),
    call(
        "ranks",
        "--nodes",
        SIZE,
        "--gpus-per-node",
        SIZE,
        "--tp",
        SIZE,
        **AXES,
        dp=SIZE,
        order=words(*CONVENTIONS, "pp-dp-tp"),
        groups=words("tp", "tp,ep", "dp-cp,pp", "tp-ep"),
    ),
    call(
        "schedule",
        words(*SCHEDULES),
        "--stages",
        SIZE,
        "--microbatches",
        SIZE,
        chunks=SIZE,
        forward=SIZE,
        backward=SIZE,
        weight=SIZE,
        p2p=SIZE,
        pair=SIZE,
    ),
    call(
        "trace",
        words(*CONTRACTS),
        "--algorithm",
        words(*ALGORITHMS),
        "--ranks",
        SIZE,
        root=SIZE,
        schedule=words("nccl", "textbook"),
        ranks_per_node=SIZE,
        segments=SIZE,
    ),
    call(
        "cost",
        words(*CONTRACTS),
        "--algorithm",
        words(*ALGORITHMS),
        "--ranks",
        SIZE,
        "--bytes",
        words("1 GB", "1e9", "1"),
        "--link",
        words(*LINKS, "50 GB/s"),
        latency=words("1 µs"),
        network=words(*LINKS),
        ranks_per_node=SIZE,
        segments=SIZE,
        model=words("nccl", "textbook"),
    ),
    call(
        "convert",
        "busbw",
        words(*CONTRACTS),
        "--ranks",
        SIZE,
        bytes=words("1 GB"),
        time=words("1 ms"),
        algbw=RATES,
        busbw=RATES,
    ),
    *(
        call(
            verb,
            "--model",
            words(*MODELS),
            "--nodes",
            SIZE,
            "--gpus-per-node",
            SIZE,
            tp=SIZE,
            **AXES,
            microbatches=SIZE,
            sequence=SIZE,
            schedule=words(*SCHEDULES),
            chunks=SIZE,
        )
        for verb in ("memory", "step")
    ),
)


@st.composite
def named(draw: st.DrawFn) -> list[str]:
    """Return a call of `show` or `eval`, with arguments that the figure or formula has."""
    verb = draw(st.sampled_from(["show", "eval"]))
    known = {"show": FIGURES, "eval": FORMULAS}[verb]
    name = draw(st.sampled_from(sorted(known)))
    parts = known[name].parameters if verb == "show" else known[name].args
    value = words(*NUMBERS, "1 GB", "[4, 8]", "h100-ndr", "1f1b", "ring", "llama-3-405b", *RUNS)
    keep = st.integers(0, 9).map(bool)
    given_ = [f"{part.name}={draw(value)}" for part in parts if draw(keep)]
    form = ["--as", draw(words("text", "svg", "json", "csv"))] if verb == "show" else []
    return [verb, name, *given_, *form]


def check(arguments: list[str]) -> None:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            status = main(arguments)
        except SystemExit as stopped:
            status = stopped.code
    if status == 0:
        assert said.getvalue()
        if "--json" in arguments:
            json.loads(said.getvalue())
    else:
        assert status == 2
        assert said.getvalue() == ""
        assert complained.getvalue().count("\n") == 1
        assert len(complained.getvalue()) < 600


@settings(max_examples=drawn(25, 200))
@given(CALLS)
@example(["ranks", "--nodes", "90090", "--gpus-per-node", "8", "--tp", "7", "--etp", "17"])
@example(["schedule", "v-min", "--stages", "512", "--microbatches", "1000000000"])
@example(["trace", "all-to-all", "--algorithm", "naive", "--ranks", "1000000000"])
@example(["cost", "all-to-all", "--algorithm", "naive", "--ranks", "1000000000", "--bytes", "1",
          "--link", "nvlink4"])  # fmt: skip
@example(["cost", "all-reduce", "--ranks", "1000000000", "--bytes", "1e999999999 B", "--link", "x"])
@example([])
@example(["nothing\nlike\nthis"])
def test_a_verb_answers_or_refuses_in_one_line(arguments: list[str]) -> None:
    check(arguments)


@settings(max_examples=drawn(25, 200))
@given(named())
@example(["show", "ring-diagram", "ranks=1000000000"])
@example(["show", "pipeline-timeline", "schedule=gpipe", "stages=100000", "microbatches=100000"])
@example(["show", "pipeline-timeline", "schedule=1f1b", "stages=2001-13-45"])
@example(["show", "collective-steps", "collective=all-to-all", "algorithm=bruck", "ranks=128"])
@example(["show", "all-reduce-algorithms", "nodes=4096"])
@example(["eval", "bubble_fraction", "stages=" + "9" * 5000, "microbatches=8"])
@example(["eval", "bubble_fraction(stages=4, microbatches=8):.1000000000f"])
@example(["show", "cp-identity", "cp=1"])
@example(["show", "cp-identity", "sequence_length=1000000"])
@example(["eval", "schedule('1f1b', stages=10**9, microbatches=1).makespan"])
@example(["eval", "schedule('v-min', stages=9999999, microbatches=99999999).makespan"])
def test_a_figure_or_formula_answers_or_refuses_in_one_line(arguments: list[str]) -> None:
    check(arguments)
