"""Traces, timed step by step, compared with their closed forms and published values."""

from __future__ import annotations

from inspect import signature

import pytest

from figgen.formulas import evaluate
from figgen.models.collectives import (
    TRACES,
    CollectiveTrace,
    bytes_sent_per_rank,
    largest_message_per_step,
    synchronous_time_s,
    trace,
)
from figgen.models.collectives.closed_forms import CLOSED_FORMS, LIMITS

# (collective, algorithm, options, n, message bytes, latency s, bandwidth B/s, published s)
PUBLISHED = [
    ("all-reduce", "naive", {}, 8, 1e9, 0, 50e9, 0.28),
    ("all-reduce", "naive", {}, 64, 1e3, 5e-6, 50e9, 0.00063252),
    ("all-reduce", "binomial-tree", {}, 8, 1e9, 0, 50e9, 0.12),
    ("all-reduce", "binomial-tree", {}, 64, 1e3, 5e-6, 50e9, 6.024e-05),
    ("all-reduce", "ring", {}, 8, 140e9, 0, 300e9, 0.816666667),
    ("all-reduce", "ring", {}, 512, 1e6, 5e-6, 50e9, 0.00514992188),
    ("all-reduce", "recursive-halving-doubling", {}, 8, 1e9, 0, 50e9, 0.035),
    ("all-reduce", "recursive-halving-doubling", {}, 64, 1e4, 5e-6, 50e9, 6.039375e-05),
    ("all-reduce", "recursive-doubling", {}, 64, 1e4, 5e-6, 50e9, 3.12e-05),
    ("all-reduce", "recursive-doubling", {}, 8, 1e9, 0, 50e9, 0.06),
    ("broadcast", "binomial-tree", {}, 8, 1e9, 0, 50e9, 0.06),
    ("broadcast", "binomial-tree", {}, 64, 1e3, 5e-6, 50e9, 3.012e-05),
    ("broadcast", "chain", {"segments": 64}, 8, 1e9, 0, 50e9, 0.021875),
    ("broadcast", "chain", {"segments": 1}, 8, 1e9, 0, 50e9, 0.14),
    ("broadcast", "scatter-all-gather", {}, 8, 1e9, 0, 50e9, 0.035),
    ("broadcast", "scatter-all-gather", {}, 16, 1e6, 5e-6, 50e9, 0.0001325),
    ("reduce", "binomial-tree", {}, 8, 1e9, 0, 50e9, 0.06),
    ("reduce", "binomial-tree", {}, 64, 1e3, 5e-6, 50e9, 3.012e-05),
    ("reduce", "chain", {"segments": 64}, 8, 1e9, 0, 50e9, 0.021875),
    ("reduce", "reduce-scatter-gather", {}, 8, 1e9, 0, 50e9, 0.035),
    ("scatter", "binomial-tree", {}, 8, 1e9, 0, 50e9, 0.0175),
    ("gather", "binomial-tree", {}, 8, 1e9, 0, 50e9, 0.0175),
    ("all-gather", "recursive-doubling", {}, 8, 1e9, 5e-6, 50e9, 0.017515),
    ("reduce-scatter", "recursive-halving", {}, 8, 1e9, 5e-6, 50e9, 0.017515),
    ("all-to-all", "pairwise", {}, 8, 8e8, 0, 50e9, 0.014),
    ("all-to-all", "pairwise", {}, 64, 1e6, 5e-6, 50e9, 0.0003346875),
    ("all-to-all", "pairwise", {}, 8, 8e3, 5e-6, 50e9, 3.514e-05),
    ("all-to-all", "bruck", {}, 8, 8e3, 5e-6, 50e9, 1.524e-05),
]


@pytest.mark.parametrize(
    ("collective", "algorithm", "options", "n", "size", "latency_s", "bandwidth", "published_s"),
    PUBLISHED,
)
def test_a_trace_takes_the_published_time(
    collective, algorithm, options, n, size, latency_s, bandwidth, published_s
) -> None:
    # without the machine check, which other tests run: it dominates for 512 ranks
    made = TRACES[collective, algorithm](n, **options)
    assert synchronous_time_s(made, size, latency_s, bandwidth) == pytest.approx(published_s)


@pytest.mark.parametrize("n", range(1, 17))
def test_all_reduce_is_reduce_scatter_and_all_gather_and_reduce_and_broadcast(n: int) -> None:
    def time_s(collective: str, algorithm: str) -> float:
        return synchronous_time_s(trace(collective, algorithm, n), 1e9, 1e-6, 50e9)

    halves = time_s("reduce-scatter", "ring") + time_s("all-gather", "ring")
    assert time_s("all-reduce", "ring") == pytest.approx(halves)
    for algorithm in ("naive", "binomial-tree"):
        parts = time_s("reduce", algorithm) + time_s("broadcast", algorithm)
        assert time_s("all-reduce", algorithm) == pytest.approx(parts)


LEVELS = ("hierarchical", "hierarchical-leader")
FLAT = [key for key in CLOSED_FORMS if key[1] not in LEVELS]
# α and 1/B apart, then both: the first counts steps, the second bytes.
LINKS = [(1.0, 1e30), (0.0, 1.0), (5e-6, 50e9)]


def small(collective: str, algorithm: str) -> list[tuple[CollectiveTrace, dict[str, int]]]:
    """Return every number of ranks up to 16 that the algorithm and its formula support."""
    halving = algorithm.startswith("recursive")
    made = []
    for n in (1, 2, 4, 8, 16) if halving else range(1, 17):
        if algorithm == "chain":
            made += [
                (TRACES[collective, algorithm](n, segments=k), {"ranks": n, "segments": k})
                for k in (1, 2, 3, 8)
                if n > 1
            ]
        else:
            made.append((TRACES[collective, algorithm](n), {"ranks": n}))
    return made


def formula_s(key: tuple[str, str], size: float, link: tuple[float, float], given) -> float:
    alpha, bandwidth = link
    return evaluate(
        CLOSED_FORMS[key],
        message_bytes=size,
        latency_s=alpha,
        bandwidth_bytes_per_s=bandwidth,
        **given,
    ).value


@pytest.mark.parametrize("key", [key for key in FLAT if key not in LIMITS], ids="-".join)
def test_every_trace_takes_the_time_of_its_closed_form(key: tuple[str, str]) -> None:
    for made, given in small(*key):
        for link in LINKS:
            assert synchronous_time_s(made, 720720.0, *link) == pytest.approx(
                formula_s(key, 720720.0, link, given), rel=1e-12, abs=1e-15
            )


def test_bruck_takes_the_time_of_its_closed_form_for_powers_of_two_and_less_otherwise() -> None:
    for made, given in small("all-to-all", "bruck"):
        for link in LINKS:
            took = synchronous_time_s(made, 720720.0, *link)
            formula = formula_s(("all-to-all", "bruck"), 720720.0, link, given)
            if made.ranks & (made.ranks - 1) == 0:
                assert took == pytest.approx(formula, rel=1e-12, abs=1e-15)
            assert took <= formula * (1 + 1e-12)


EVERY_RANK_ALIKE = [
    ("all-reduce", "ring"), ("all-reduce", "recursive-doubling"),
    ("all-reduce", "recursive-halving-doubling"), ("reduce-scatter", "ring"),
    ("reduce-scatter", "recursive-halving"), ("all-gather", "ring"),
    ("all-gather", "recursive-doubling"), ("all-to-all", "pairwise"),
]  # fmt: skip


@pytest.mark.parametrize("key", EVERY_RANK_ALIKE, ids="-".join)
def test_every_rank_sends_the_bytes_of_the_closed_form(key: tuple[str, str]) -> None:
    for made, given in small(*key):
        sent = formula_s(key, 720720.0, (0.0, 1.0), given)
        assert bytes_sent_per_rank(made, 720720.0) == pytest.approx((sent,) * made.ranks)


def test_a_two_level_trace_takes_the_time_of_its_closed_form_on_any_nodes() -> None:
    links = {"within": (1e-6, 450e9), "between": (5e-6, 50e9)}
    for nodes in range(1, 17):
        for width in range(1, 16 // nodes + 1):
            made = TRACES["all-reduce", "hierarchical"](nodes * width, ranks_per_node=width)
            took = 0.0
            for phase, size in zip(made.phases, largest_message_per_step(made, 1e9), strict=True):
                alpha, bandwidth = next(link for word, link in links.items() if word in phase)
                took += alpha + size / bandwidth
            names = ("intra_latency_s", "intra_bandwidth_bytes_per_s", "inter_latency_s",
                     "inter_bandwidth_bytes_per_s")  # fmt: skip
            given = dict(zip(names, (*links["within"], *links["between"]), strict=True))
            formula = evaluate(
                "two_level_all_reduce_time",
                gpus_per_node=width,
                nodes=nodes,
                message_bytes=1e9,
                **given,
            ).value
            assert took == pytest.approx(formula, rel=1e-12)


def test_every_closed_form_is_of_a_trace_and_only_naive_traces_have_none() -> None:
    assert set(CLOSED_FORMS) <= set(TRACES)
    assert set(LIMITS) <= set(CLOSED_FORMS)
    for collective, algorithm in set(TRACES) - set(CLOSED_FORMS):
        assert algorithm == "naive", collective
        assert set(signature(TRACES[collective, algorithm]).parameters) <= {"ranks", "root"}


@pytest.mark.parametrize("n", range(1, 17))
def test_naive_collectives_are_made_of_their_rooted_parts(n: int) -> None:
    def time_s(collective: str) -> float:
        return synchronous_time_s(trace(collective, "naive", n), 1e9, 1e-6, 50e9)

    whole, share = (1e-6 + 1e9 / 50e9) * (n - 1), (1e-6 + 1e9 / n / 50e9) * (n - 1)
    assert time_s("broadcast") == pytest.approx(whole)
    assert time_s("reduce") == pytest.approx(whole)
    assert time_s("scatter") == pytest.approx(share)
    assert time_s("gather") == pytest.approx(share)
    assert time_s("reduce-scatter") == pytest.approx(whole + share)
    assert time_s("all-to-all") == pytest.approx(n * share)
