"""What must hold for every registered formula, whatever it computes."""

import ast
import inspect
import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest
from latex2mathml.converter import convert

from figgen.equations.syntax import conditions, expression, tree
from figgen.equations.tree import text
from figgen.errors import InputError
from figgen.formulas import (
    FORMULAS,
    NOTATION,
    TOPICS,
    Evaluation,
    domain_latex,
    evaluate,
    latex,
    worked,
)
from figgen.quantity_shown import NBSP
from figgen.quantity_units import is_counted
from figgen.units import format_quantity, parse_quantity
from tests.formulas.points import FIRST, POINTS, Point

EVERY = pytest.mark.parametrize("name", FORMULAS)


def points_of(name: str) -> list[Point]:
    return [point for point in POINTS if point.formula == name]


def test_every_formula_lives_in_a_topic_and_every_notation_is_used() -> None:
    modules = {topic.__name__ for topic in TOPICS}
    assert {formula.module for formula in FORMULAS.values()} == modules
    used = {argument.name for formula in FORMULAS.values() for argument in formula.args}
    assert used == set(NOTATION)


def test_formula_says_what_it_is() -> None:
    for name, formula in FORMULAS.items():
        assert re.fullmatch(r"[A-Z1].*\.", formula.doc), name
        assert formula.doc.count(".") < 4, name
        assert inspect.getsourcelines(formula.function)[1] == formula.line, name


@EVERY
def test_latex_becomes_mathml_without_leftovers(name: str) -> None:
    formula = FORMULAS[name]
    line = worked(evaluate(name, **FIRST[name].arguments))
    for source in (latex(formula), line.latex, *domain_latex(formula)):
        assert "\\" not in convert(source)
        assert source.count("{") == source.count("}")
        assert source.count(r"\left") == source.count(r"\right")


@EVERY
def test_array_of_points_gives_the_plain_numbers_of_each_point(name: str) -> None:
    points = points_of(name)
    alone = [evaluate(name, **point.arguments).value for point in points]
    assert {type(value) for value in alone} <= {int, float}
    arrays = {
        argument.name: np.array([point.arguments[argument.name] for point in points], float)
        for argument in FORMULAS[name].args
    }
    # Only powers may differ, in the last bit; everything else is the same operation.
    np.testing.assert_allclose(FORMULAS[name].function(**arrays), alone, rtol=5e-16, atol=0)


SPOILERS = (-2, -1, 0, 1, 2, 3, 4, 5, 7, 0.5, 1.5, 10**6, 1e15)


def spoiled(point: Point, condition: ast.expr) -> bool:
    """Return whether changing one argument of the point violates exactly this condition.

    Two arguments are changed if either of two conditions is sufficient.
    """
    together = 2 if isinstance(condition, ast.BoolOp) else 1
    for names in itertools.combinations(point.arguments, together):
        for values in itertools.product(SPOILERS, repeat=together):
            changed = dict(zip(names, values, strict=True))
            try:
                evaluate(point.formula, **{**point.arguments, **changed})
            except InputError as error:
                if error.expected == text(tree(condition), {}):
                    return True
    return False


@EVERY
def test_every_condition_of_the_domain_can_be_broken_and_is_then_named(name: str) -> None:
    for condition in conditions(FORMULAS[name]):
        assert spoiled(FIRST[name], condition), text(tree(condition), {})


def test_counts_must_be_whole() -> None:
    for name, formula in FORMULAS.items():
        for argument in formula.args:
            if argument.whole:
                with pytest.raises(InputError, match="a whole number"):
                    evaluate(name, **{**FIRST[name].arguments, argument.name: 1.5})


READ_BACK = {
    "·": "*", "−": "-", "^": "**", "⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")",
    "√": "sqrt", "log₂": "log2", " mod ": " % ", "≥": ">=", " = ": " == ", ", else": " else",
}  # fmt: skip
QUANTITY = re.compile(rf"[\d,]*\.?\d+(?:{NBSP}×{NBSP}10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?:{NBSP}[^\s(),·⌉⌋]+)?")


def computed(line: str) -> float:
    """Return the value of a worked line's left side, as computed with a pocket calculator."""
    source = QUANTITY.sub(lambda match: repr(parse_quantity(match[0]).value), line)
    for shown, meant in READ_BACK.items():
        source = source.replace(shown, meant)
    known = {"min": min, "max": max, "floor": math.floor, "ceil": math.ceil}
    known |= {"sqrt": math.sqrt, "log2": math.log2, "e": math.e}
    return float(eval(source, {"__builtins__": {}}, known))


@EVERY
def test_worked_line_computes_to_the_value(name: str) -> None:
    for point in points_of(name):
        check_worked(evaluate(name, **point.arguments))


def check_worked(evaluation: Evaluation) -> None:
    line = worked(evaluation)
    left, sign, right = re.fullmatch(r"(.*) ([=≈]) (.*)", line.text).groups()  # type: ignore[union-attr]
    assert right == line.result == format_quantity(evaluation.value, evaluation.formula.unit)
    # Six digits of each argument are shown; differences of nearly equal ones lose some.
    assert computed(left) == pytest.approx(evaluation.value, rel=3e-5, abs=1e-300)
    shown = parse_quantity(right).value
    assert shown == pytest.approx(evaluation.value, rel=0.006)
    assert sign == "≈" or math.isclose(shown, evaluation.value, rel_tol=1e-12)


def dimension(unit: str) -> Counter[str]:
    above, *below = unit.split("/")
    counted = Counter({above: 1})
    for base in below:
        counted[base] -= 1
    return Counter(
        {base: n for base, n in counted.items() if n and base != "1" and not is_counted(base)}
    )


# Numbers in these expressions have a dimension: bytes of a 16-bit activation, FLOP per
# multiplication and addition, seconds of an hour.
CONSTANTS = {
    **{name: "B" for name in FORMULAS if FORMULAS[name].module.endswith("activation_memory")},
    "stage_activation_bytes": "1",
    **dict.fromkeys(
        (
            "training_flops",
            "training_flops_with_attention",
            "training_flops_with_recompute",
            "layer_forward_flops",
            "attention_core_flops",
            "data_parallel_ccr",
            "fsdp_ccr",
            "model_flops_utilization",
            "tensor_parallel_layer_ccr",
            "expert_all_to_all_ccr",
        ),
        "FLOP",
    ),
    **dict.fromkeys(
        (
            "critical_tokens",
            "critical_tokens_of_group",
            "ring_attention_min_tokens",
            "causal_ring_attention_min_tokens",
        ),
        "1/FLOP",
    ),
    "training_time": "s/GPU-h",
    "lanes_bandwidth": "B",
    "cast_bytes_per_element": "B",
    "cast_break_even_width": "1/FLOP",
    **dict.fromkeys(
        ("prefill_time", "newton_schulz_flops", "product_intensity", "state_space_work"), "FLOP"
    ),
    "critical_decode_sequences": "1/FLOP",
    "price_per_token": "GPU-h/s",
    "energy_per_token": "J/W/s",
    "training_energy": "J/GPU-h/W",
    **dict.fromkeys(("power_law_loss", "uniform_loss"), "nat"),
    "infiniband_timeout": "s",
}


def dimension_of(node: ast.expr, units: dict[str, Counter[str]]) -> Counter[str] | None:
    """Return powers of the base units; None for a number, which may have any unit."""
    match node:
        case ast.Constant():
            return None
        case ast.Name(id=name):
            return units[name]
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() | ast.FloorDiv() as op, right=right):
            total = Counter(dimension_of(left, units) or {})
            for base, power in (dimension_of(right, units) or {}).items():
                total[base] += power if isinstance(op, ast.Mult) else -power
            return Counter({base: power for base, power in total.items() if power})
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            below, power = (
                dimension_of(left, units),
                ast.literal_eval(right) if isinstance(right, ast.Constant) else None,
            )
            assert not below or power is not None
            return Counter({base: count * power for base, count in (below or {}).items()})
        case ast.Call(func=ast.Name(id="log2" | "exp"), args=[argument]):
            assert not dimension_of(argument, units)
            return Counter()
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            squared = dimension_of(argument, units) or Counter()
            assert not any(power % 2 for power in squared.values())
            return Counter({base: power // 2 for base, power in squared.items()})
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Call(func=ast.Name(id=called), args=arguments):
            parts = arguments[1:] if called == "where" else arguments
        case _:
            raise AssertionError(ast.dump(node))
    known = [found for part in parts if (found := dimension_of(part, units)) is not None]
    assert all(found == known[0] for found in known), ast.unparse(node)
    return known[0] if known else None


def test_units_of_the_arguments_make_the_unit_of_the_result() -> None:
    for name, formula in FORMULAS.items():
        units = {argument.name: dimension(argument.unit) for argument in formula.args}
        found = Counter(dimension_of(expression(formula), units) or {})
        found.update(dimension(CONSTANTS.get(name, "1")))
        known = {base: power for base, power in found.items() if power}
        assert known == dimension(formula.unit), name
