"""Quantities to and from SI, compared with values written down by hand."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.quantity_shown import span_shown
from figgen.quantity_units import MEASURED
from figgen.units import canonical_unit, format_quantity, parse_quantity

READ = {
    "3.35 TB/s": (3_350_000_000_000, "B/s"),
    "80 GB": (80_000_000_000, "B"),
    "80GB": (80_000_000_000, "B"),
    "80 GiB": (85_899_345_920, "B"),
    "25 MiB": (26_214_400, "B"),
    "400 Gb/s": (50_000_000_000, "B/s"),
    "200 Gbit/s": (25_000_000_000, "B/s"),
    "989.4 TFLOP/s": (989_400_000_000_000, "FLOP/s"),
    "1.5 µs": (1.5e-6, "s"),
    "1.5 us": (1.5e-6, "s"),
    "0.6 µs": (6e-7, "s"),
    "2.5 h": (9000, "s"),
    "3 days": (259_200, "s"),
    "−3 ms": (-0.003, "s"),
    "2 ps/B": (2e-12, "s/B"),
    "70B params": (70_000_000_000, "param"),
    "15.6T tokens": (15_600_000_000_000, "token"),
    "2 B/param": (2, "B/param"),
    "380 tokens/s": (380, "token/s"),
    "16 microbatches": (16, "microbatch"),
    "8 ranks": (8, "rank"),
    "2 $/GPU-h": (2, "USD/GPU-h"),
    "45%": (0.45, "1"),
    "1,000": (1000, "1"),
    "6.25e-2": (0.0625, "1"),
    "150 kW": (150_000, "W"),
    "3.15 × 10²³ FLOP": (315_000_000_000_000_000_000_000, "FLOP"),
    "1.5 × 10⁻⁶ s": (1.5e-6, "s"),
    "43,5 ms": (0.0435, "s"),
    "0,5": (0.5, "1"),
    "0,125 s": (0.125, "s"),
    "1,500 ms": (1.5, "s"),
    "1,234,567.8 B/s": (1_234_567.8, "B/s"),
    "1.234,5 s": (1234.5, "s"),
    "1_000_000 tokens": (1_000_000, "token"),
    "4M tokens": (4_000_000, "token"),
    "4 Mtokens": (4_000_000, "token"),
    "8k": (8000, "1"),
    "8K tokens": (8000, "token"),
    "5.576M USD": (5_576_000, "USD"),
    "1.5e6": (1_500_000, "1"),
    "1.5e6 tokens": (1_500_000, "token"),
    "2h30": (9000, "s"),
    "2 h 30 min": (9000, "s"),
    "1h05m": (3900, "s"),
    "2h 30m": (9000, "s"),
    "2h30m15s": (9015, "s"),
    "1:30:00": (5400, "s"),
    "0:01:30": (90, "s"),
    "1-06:30:00": (109_800, "s"),  # days as in Slurm's --time
    "1m30s": (90, "s"),
    "1 min 30 s": (90, "s"),
    "3 days 4 h": (273_600, "s"),
    "90 min": (5400, "s"),
    "400 Gbps": (50_000_000_000, "B/s"),
    "8 GiB": (8_589_934_592, "B"),
    "1.5 μs": (1.5e-6, "s"),
}


@pytest.mark.parametrize("text", READ)
def test_quantity_is_read_exactly_in_si(text: str) -> None:
    value, unit = READ[text]
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.unit) == (value, unit)
    assert isinstance(quantity.value, type(value))


REFUSED = {
    "3 KB": "kB",
    "3 TFLOPS": "TFLOP/s",
    "3 gb": "GB",
    "3 GB/S": "GB/s",
    "12 GBps": "GB/s",
    "3 rankz": "rank",
    "4 Gb": "GB",
    "3 d": "days",
    "2 GPU/d": "GPU/days",
    "5 hrs": "h",
    "5m": "min",
}


@pytest.mark.parametrize("text", REFUSED)
def test_unknown_unit_names_the_likely_one(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_quantity(text)
    assert REFUSED[text] in caught.value.nearest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "GB 3",
        "nan",
        "3 foo",
        "3 GB GB",
        "3 B//s",
        "1e",
        "3 /s",
        "1,23,456 B",
        "1,2,3",
        "1.2.3 s",
        "43,5.1 ms",
        "1,234.567,8 s",
        "2h99",
        "2h30s",
        "1:30",
        "1:75:00",
        "1m90s",
        "30s 2m",
        ",5",
        "1,,000",
    ],
)
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_quantity(text)


@pytest.mark.parametrize(
    "text",
    ["1e999999999 B", "1 × 10⁹⁹⁹⁹⁹⁹⁹⁹⁹ B", "9" * 5000, "1e-999999999 s", "1e301", "-2e300 YB"],
)
def test_numbers_beyond_all_measure_are_refused_at_once(text: str) -> None:
    with pytest.raises(InputError, match="not a quantity") as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 200


def test_another_dimension_than_asked_for_is_refused() -> None:
    with pytest.raises(InputError, match="expected B/s, got 'B'"):
        parse_quantity("3 GB", "B/s")
    assert parse_quantity("3 GB/s", "B/s").value == 3_000_000_000


def test_only_units_without_a_factor_are_canonical() -> None:
    assert canonical_unit("bytes/s") == "B/s"
    assert canonical_unit("ranks") == "rank"
    for scaled in ("GB", "h", "Gb/s", "KiB"):
        with pytest.raises(InputError):
            canonical_unit(scaled)


WRITTEN = [
    (0.00389, "s", "", "3.89 ms"),
    (3.0001e-3, "s", "time", "3.00 ms"),
    (3e-3, "s", "time", "3 ms"),
    (90, "s", "time", "1.5 min"),
    (86_400, "s", "time", "1 day"),
    (6_480_000, "s", "time", "75 days"),
    (60.2e-6, "s", "time", "60.2 µs"),
    (1e9, "B", "", "1 GB"),
    (0, "B", "si", "0 B"),
    (512, "B", "bytes", "512 B"),
    (999.6e6, "B", "bytes", "1.00 GB"),
    (999.4e6, "B", "bytes", "999 MB"),
    (-3e9, "B", "bytes", "−3 GB"),
    (352_321_536, "B", "gib", "336 MiB"),
    (80e9, "B", "gib", "74.5 GiB"),
    (80 * 2**30, "B", "gib", "80 GiB"),
    (16, "B/param", "", "16 B/param"),
    (2e-12, "s/B", "si", "2 ps/B"),
    (450e9, "B/s", "", "450 GB/s"),
    (989.4e12, "FLOP/s", "flops", "989 TFLOP/s"),
    (989.4e12, "FLOP/s", "flops.4", "989.4 TFLOP/s"),
    (3.15e23, "FLOP", "si", "315 ZFLOP"),
    (405_853_388_800, "param", "si", "406B"),
    (405_853_388_800, "param", "si.4", "405.9B"),
    (999_999, "token", "si", "1.00M"),
    (5_576_000, "USD", "si", "5.58M USD"),
    (8, "rank", "unit", "8 ranks"),
    (1, "rank", "unit", "1 rank"),
    (31.5, "microbatch", "", "31.5 microbatches"),
    (3, "microbatch", "", "3 microbatches"),
    (1465.777, "token", "unit", "1,466 tokens"),
    (24_500_000_000.0, "B", "unit", "24,500,000,000 B"),
    (24_500_000_000.0, "B", ",", "24,500,000,000"),
    (0.272727, "1", ".1%", "27.3%"),
    (-0.272727, "1", ".1%", "−27.3%"),
    (0.272727, "1", "", "0.273"),
    (9.9999, "1", "", "10.0"),
    (1.234e-5, "1", "", "1.23 × 10⁻⁵"),
    (3.15e23, "1", "", "3.15 × 10²³"),
    (2199 - 1 / 3, "FLOP/B", "", "2,199 FLOP/B"),
    (2199 - 1 / 3, "FLOP/B", "si", "2.20 kFLOP/B"),
    (0.875, "B/s", "", "0.875 B/s"),
    (math.inf, "token", "", "∞ tokens"),
    (Fraction(3, 11), "1", ".3f", "0.273"),
    (np.float64(0.5), "1", "", "0.5"),
    (1890.4, "FLOP/B", ",.3g", "1.89 × 10³"),
    (2e-11, "s/B", ".3g", "2 × 10⁻¹¹"),
    (-2.64e-6, "1", ".2e", "−2.64 × 10⁻⁶"),
    (1e-9, "1", ".0e", "10⁻⁹"),
    (1e5, "1", "+.0e", "+10⁵"),
    (0.0, "1", ".2e", "0"),
    (-0.0, "1", ".2e", "0"),
    (-0.0004, "1", "+.1%", "0.0%"),
    (0.0, "1", "+.0%", "0%"),
    (-0.004, "1", ".2f", "0.00"),
    (0.05, "1", "+.1%", "+5.0%"),
    (3e38, "1", ".0e", "3 × 10³⁸"),
]


@pytest.mark.parametrize(("value", "unit", "spec", "text"), WRITTEN)
def test_quantity_is_written(value: float, unit: str, spec: str, text: str) -> None:
    assert format_quantity(value, unit, spec).replace("\N{NO-BREAK SPACE}", " ") == text


def test_number_and_unit_never_part_at_a_line_end() -> None:
    for value, unit, spec, _ in WRITTEN:
        assert " " not in format_quantity(value, unit, spec)


def test_three_digits_are_kept_over_all_magnitudes() -> None:
    for exponent in range(-14, 24):
        for mantissa in (1.0, 1.234, 9.87, 9.994, 9.996):
            value = mantissa * 10.0**exponent
            back = parse_quantity(format_quantity(value, "B/s", "si")).value
            assert back == pytest.approx(value, rel=0.0051)


def test_bytes_in_binary_prefixes_read_back() -> None:
    for power in range(0, 55):
        assert parse_quantity(format_quantity(2**power, "B", "gib")).value == 2**power


@pytest.mark.parametrize(
    ("value", "unit", "spec"),
    [
        (1, "s", "bytes"),
        (1, "B", "time"),
        (1, "B", "flops"),
        (1, "1", "gib"),
        (1, "1", "tim"),
        (1, "1", "si.0"),
        (1, "1", "si.x"),
        (1, "1", ".1q"),
        (1, "1", ".1000000000f"),
        (1, "1", "1000000000"),
        (1, "GB", "si"),
        (True, "1", ""),
        ("1", "1", ""),
        (math.nan, "1", ""),
    ],
)
def test_what_cannot_be_shown_is_refused(value: float, unit: str, spec: str) -> None:
    with pytest.raises(InputError):
        format_quantity(value, unit, spec)


@pytest.mark.parametrize(
    ("value", "unit", "spec", "text"),
    [
        (3.35e12, "B/s", "in GB/s", "3,350 GB/s"),
        (7200, "s", "in h", "2 h"),
        (100, "s", "in.2 min", "1.7 min"),
        (-5e-5, "s", "in µs", "−50 µs"),
    ],
)
def test_a_value_is_shown_in_a_given_unit(value: float, unit: str, spec: str, text: str) -> None:
    assert format_quantity(value, unit, spec) == text.replace(" ", "\N{NO-BREAK SPACE}")


def test_a_value_is_not_shown_in_a_unit_of_another_dimension() -> None:
    with pytest.raises(InputError, match="'in GB' does not fit: expected a unit of s"):
        format_quantity(1, "s", "in GB")
    with pytest.raises(InputError, match="unknown unit 'qq'"):
        format_quantity(1, "s", "in qq")


def test_misspelled_format_names_the_likely_one() -> None:
    with pytest.raises(InputError) as caught:
        format_quantity(1, "B", "byte")
    assert caught.value.nearest == ("bytes",)


@pytest.mark.parametrize("unit", ["USD", *sorted(MEASURED)])
@pytest.mark.parametrize("spec", ["", "si", "si.4", "unit"])
def test_an_amount_of_any_size_reads_back(unit: str, spec: str) -> None:
    for value in (2, 1234, 5_576_000, 12e9, 3.4e12):
        read = parse_quantity(format_quantity(value, unit, spec))
        assert read.unit == unit
        assert read.value == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (45.3, 64.2, "45.3\u00a0s to 64.2\u00a0s"),
        (0.953, 1.07, "0.953\u00a0s to 1.07\u00a0s"),
        (4.1, 5.2, "4.1\u00a0s to 5.2\u00a0s"),
        (90, 150, "1.5\u00a0min to 2.5\u00a0min"),
    ],
)
def test_both_ends_of_an_interval_have_one_unit(low: float, high: float, said: str) -> None:
    assert span_shown(low, high) == said


DEFINED = """
from figgen.author import InputError, unit
from figgen.units import format_quantity, parse_quantity

def told(call, *given, **named):
    try:
        print(call(*given, **named))
    except InputError as error:
        print(error)

unit("m")
unit("K")
told(parse_quantity, "10 cm", "m")
unit("cm", is_="0.01 m")
told(parse_quantity, "10 cm", "m")
told(unit, "min", is_="61 s")
told(unit, "min", is_="60 s")
told(unit, "cm", is_="0.01 m")
told(unit, "cm", is_="0.1 m")
told(unit, "cm")
unit("kn", is_="0.5 m")
told(format_quantity, 1.5, "m", "in.2 kn")
told(format_quantity, 1.5, "m", "in.0 kn")
"""


def test_a_site_defines_units_each_with_one_meaning() -> None:
    """In a process of its own, since a unit stays defined."""
    done = subprocess.run([sys.executable, "-c", DEFINED], capture_output=True, text=True)
    taken = "means something else already: expected"
    assert done.stdout.splitlines() == [
        """unknown unit 'cm': expected a unit that the module adds: unit("cm", is_="0.01 m")""",
        "Quantity(value=0.1, unit='m')",
        f"unit 'min' {taken} 60 s",
        "None",
        "None",
        f"unit 'cm' {taken} 0.01 m",
        f"unit 'cm' {taken} 0.01 m",
        "3\N{NO-BREAK SPACE}kn",
        "bad number of digits: expected in.1 to in.19, for so many significant digits, "
        "got 'in.0 kn'",
    ], done.stderr


PREFIXED = """
from figgen.author import unit
from figgen.charts import Column, Table
from figgen.renderers.table import shown
from figgen.units import format_quantity

unit("g", prefixes=True)
unit("m²")
for value in (0.77, 999, 1500, 0.05, -3):
    print(format_quantity(value, "g/s"))
print(format_quantity(2000, "m²", "si"))
for column in (Column(label="a", unit="g"), Column(label="a", unit="g", spec="in.2 kg")):
    print(*shown(Table(columns=(column,), rows=((0.5,), (3.05,)))).headings)
print(*shown(Table(columns=(column,), rows=((5432,),))).rows[0])
area = Column(label="area", unit="m²", spec="si")
print(*shown(Table(columns=(area,), rows=((0.5,), (2e6,)))).headings)
"""


def test_a_unit_of_a_site_has_a_prefix_only_where_it_helps_or_is_asked_for() -> None:
    """In a process of its own, since a unit stays defined."""
    done = subprocess.run([sys.executable, "-c", PREFIXED], capture_output=True, text=True)
    numbers = ["0.77 g/s", "999 g/s", "1.5 kg/s", "50 mg/s", "−3 g/s", "2,000 m²"]
    assert done.stdout.replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        *numbers,
        *("a (g)", "a (kg)", "5.4", "area (m²)"),
    ], done.stderr


SCALED = """
from figgen.author import unit
from figgen.units import format_quantity, parse_quantity

def told(call, *args, **named):
    try:
        print(call(*args, **named))
    except ValueError as error:
        print(error)

told(unit, "L", is_="0.001 m³")
unit("m", prefixes=True)
unit("Wh", is_="3600 J", prefixes=True)
told(parse_quantity, "1.5 kWh")
told(parse_quantity, "2 mWh/km")
told(format_quantity, 7.2e6, "J", "in kWh")
told(parse_quantity, "1 kmm")
told(unit, "in", is_="0.0254 m", prefixes=True)
told(parse_quantity, "1 in")
"""


def test_a_multiple_of_a_unit_takes_prefixes_too() -> None:
    """In a process of its own, since a unit stays defined; 1 Wh is 3600 J."""
    done = subprocess.run([sys.executable, "-c", SCALED], capture_output=True, text=True)
    lines = done.stdout.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    known = "B, FLOP, Hz, J, W, s, 1 for a pure number, or a unit that the module adds"
    assert lines[:4] == [
        f"""unknown unit 'm³': expected {known}: unit("m³")""",
        "Quantity(value=5400000, unit='J')",
        "Quantity(value=0.0072, unit='J/m')",
        "2 kWh",
    ], done.stderr
    assert lines[4].startswith("unknown unit 'kmm': expected m, Wh, B, ")
    assert "(did you mean mm or km?)" in lines[4]
    assert lines[5] == "unit 'min' means something else already: expected 60 s"
    assert lines[6].startswith("unknown unit 'in'")
