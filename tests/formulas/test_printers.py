"""The printers compared with handwritten lines, and with LaTeX and JavaScript that run."""

import pytest
from latex2mathml.converter import convert

from figgen.equations.latex import number as latex_number
from figgen.equations.tree import number
from figgen.equations.worked import to_latex
from figgen.formulas import FORMULAS, domain, evaluate, javascript, latex, module, worked

EQUATIONS = {
    "ring_all_reduce_time": (r"T_\text{ring} = 2(n - 1)\,\alpha + \frac{2(n - 1)}{n}\,\frac{S}{B}"),
    "bubble_fraction": r"f_\text{bubble} = \frac{P - 1}{M + P - 1}",
    "pipeline_step_time": (
        r"T_\text{step} = \left(M + \frac{P - 1}{V}\right)(t_\text{f} + t_\text{b}) + T_\text{exp}"
    ),
    "one_f_one_b_in_flight": r"F_p = \min(P - p, M)",
    "tree_all_reduce_time": (
        r"T_\text{tree} = 2\,\left\lceil \log_2 n \right\rceil\left(\alpha + \frac{S}{B}\right)"
    ),
    "halving_doubling_all_reduce_time": (
        r"T_\text{RHD} = 2(\log_2 n)\,\alpha + \frac{2(n - 1)}{n}\,\frac{S}{B}"
    ),
    # Papers write k, which on a page with experts is how many of them a token visits.
    "chain_broadcast_time": (
        r"T_\text{bcast} = (n - 2 + k_\text{seg})\left(\alpha + \frac{S}{k_\text{seg}\,B}\right)"
    ),
    "cp_index_of_rank": r"\text{cp} = \left\lfloor \frac{r}{T} \right\rfloor \bmod C",
    "layer_forward_flops": r"C_\text{layer} = 24\,b\,s\,h^{2}\left(1 + \frac{s}{6\,h}\right)",
    "efficiency_without_overlap": (r"\eta = \frac{1}{1 + \frac{\text{CCR}^*}{\text{CCR}}}"),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_latex_reads_as_in_the_papers(name: str) -> None:
    assert latex(FORMULAS[name]) == EQUATIONS[name]


LINES = [
    (
        "ring_all_reduce_time",
        {"ranks": 8, "message_bytes": "1 GB", "latency_s": "1 µs",
         "bandwidth_bytes_per_s": "450 GB/s"},
        "",
        "2 · (8 − 1) · 1 µs + 2 · (8 − 1) / 8 · 1 GB / 450 GB/s ≈ 3.90 ms",
    ),
    ("bubble_fraction", {"stages": 4, "microbatches": 8}, ".1%", "(4 − 1) / (8 + 4 − 1) ≈ 27.3%"),
    ("bubble_overhead", {"stages": 4, "microbatches": 4}, ".1%", "(4 − 1) / 4 = 75.0%"),
    (
        "training_flops",
        {"parameters": "175B params", "tokens": 2048},
        "",
        "6 · 1.75 × 10¹¹ · 2,048 ≈ 2.15 PFLOP",
    ),
    (
        "training_cost",
        {"gpu_hours": 2_788_000, "price_per_gpu_hour": 2},
        "unit",
        "2,788,000 GPU-h · 2 USD/GPU-h = 5,576,000 USD",
    ),
    (
        "ring_chunk_sent",
        {"rank": 0, "step": 1, "ranks": 4, "offset": -1},
        "",
        "(0 − 1 + (−1)) mod 4 = 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "spec", "line"), LINES)
def test_worked_line_can_be_checked_by_hand(
    name: str, arguments: dict[str, object], spec: str, line: str
) -> None:
    shown = worked(evaluate(name, **arguments), spec)
    assert shown.text.replace("\N{NO-BREAK SPACE}", " ") == line
    assert shown.text.endswith(shown.result)
    assert "\\" not in convert(shown.latex)


@pytest.mark.parametrize(
    ("shown", "latex"),
    [
        ("3.35 TB/s", r"3.35\,\text{TB/s}"),
        ("42%", r"42\%"),
        ("131,072", r"\text{131,072}"),
        ("131,072 B", r"\text{131,072}\,\text{B}"),
        ("1,234%", r"\text{1,234}\%"),
        ("−2", "-2"),
        ("(−2 s)", r"(-2\,\text{s})"),
        ("∞", r"\infty"),
        ("8.8 × 10¹³", r"8.8 \times 10^{13}"),
        ("8.8 × 10⁻⁶ s", r"8.8 \times 10^{-6}\,\text{s}"),
    ],
)
def test_quantities_are_set_as_mathematics(shown: str, latex: str) -> None:
    assert to_latex(shown.replace(" ", "\N{NO-BREAK SPACE}")) == latex


@pytest.mark.parametrize(
    ("value", "latex"),
    [
        (9999, "9999"),
        (10_000, r"\text{10,000}"),
        (123_456, r"\text{123,456}"),
        (1e5, r"\text{100,000}"),
        (1e6, "10^{6}"),
        (8.8e13, r"8.8 \times 10^{13}"),
        (1_234_567, r"\text{1,234,567}"),
        (1e-4, "0.0001"),
        (1e-5, "10^{-5}"),
        (2.5e-7, r"2.5 \times 10^{-7}"),
        (0, "0"),
        (0.076, "0.076"),
    ],
)
def test_constants_are_set_exactly(value: float, latex: str) -> None:
    assert latex_number(value) == latex


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (12, "12"),
        (0.076, "0.076"),
        (0.0, "0"),
        (8.8e13, "8.8 × 10¹³"),
        (1e6, "1 × 10⁶"),
        (2.5, "2.5"),
        (999_999, "999,999"),
        (1.25e-3, "0.00125"),
    ],
)
def test_constants_are_printed_exactly(value: float, shown: str) -> None:
    assert number(value).replace("\N{NO-BREAK SPACE}", " ") == shown


def test_javascript_keeps_the_order_of_operations() -> None:
    assert javascript(FORMULAS["looping_first_layer"]).endswith(
        "export function looping_first_layer({ stage, chunk, stages, chunks, layers }) {\n"
        "  return Math.floor((chunk * stages + stage) * layers / (stages * chunks)) + 1;\n}\n"
    )
    assert "return 24 * microbatch_size * sequence_length * (hidden * hidden) * " in javascript(
        FORMULAS["layer_forward_flops"]
    )
    assert "return ((rank - step + offset) % ranks + ranks) % ranks" in javascript(
        FORMULAS["ring_chunk_sent"]
    )


def test_module_exports_every_formula() -> None:
    text = module(FORMULAS.values())
    assert text.count("export function ") == len(FORMULAS)
    assert text.count("\n  ") >= len(FORMULAS)


def test_domain_is_stated_in_words() -> None:
    assert domain(FORMULAS["interleaved_bubble_fraction"]) == (
        "stages ≥ 1, microbatches ≥ 1, chunks ≥ 1, microbatches ≥ stages or chunks = 1"
    )
    assert domain(FORMULAS["inverse_bandwidth_from_slope"]).endswith("ranks ≥ 2")
    assert "ranks ≥ 1" not in domain(FORMULAS["inverse_bandwidth_from_slope"])
