"""The palette, measured: contrast (WCAG 2.2) and difference (CIEDE2000), with normal vision and
with the three dichromacies as simulated by Machado, Oliveira and Fernandes 2009 (severity 1.0)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable

import pytest

from figgen import theme
from figgen.errors import InputError

Triple = tuple[float, float, float]
Matrix = tuple[Triple, Triple, Triple]

PALETTES = ("light", "dark")
NORMAL: Matrix = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
MACHADO: dict[str, Matrix] = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(colour: str) -> Triple:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: Iterable[float]) -> Triple:
    red, green, blue = rgb
    white = (0.95047, 1.0, 1.08883)
    xyz = (
        0.4124564 * red + 0.3575761 * green + 0.1804375 * blue,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        0.0193339 * red + 0.1191920 * green + 0.9503041 * blue,
    )
    x, y, z = (
        (part / full) ** (1 / 3)
        if part / full > 216 / 24389
        else (24389 / 27 * part / full + 16) / 116
        for part, full in zip(xyz, white, strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(first: Triple, second: Triple) -> float:
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * math.sqrt(mean**7 / (mean**7 + 25**7))
    c1, c2 = math.hypot(a1 * stretch, b1), math.hypot(a2 * stretch, b2)
    h1 = math.degrees(math.atan2(b1, a1 * stretch)) % 360
    h2 = math.degrees(math.atan2(b2, a2 * stretch)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    if c1 * c2 == 0:
        hue = h1 + h2
    elif abs(h1 - h2) <= 180:
        hue = (h1 + h2) / 2
    else:
        hue = (h1 + h2 + (360 if h1 + h2 < 360 else -360)) / 2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = 1 - 0.17 * _cos(hue - 30) + 0.24 * _cos(2 * hue)
    t += 0.32 * _cos(3 * hue + 6) - 0.20 * _cos(4 * hue - 63)
    s_l = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    s_c, s_h = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    rotation = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    r_t = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(rotation))
    d_l, d_c = (l2 - l1) / s_l, (c2 - c1) / s_c
    d_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / s_h
    return math.sqrt(d_l**2 + d_c**2 + d_h**2 + r_t * d_c * d_h)


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def seen(colour: str, matrix: Matrix = NORMAL) -> Triple:
    rgb = linear(colour)
    return lab(
        min(1.0, max(0.0, sum(a * b for a, b in zip(line, rgb, strict=True)))) for line in matrix
    )


def difference(first: str, second: str) -> float:
    """Return the smallest CIEDE2000 between two colors over normal vision and the dichromacies."""
    return min(
        ciede2000(seen(first, matrix), seen(second, matrix))
        for matrix in (NORMAL, *MACHADO.values())
    )


def inks(table: dict[str, theme.Ink], roles: Iterable[str], palette: str) -> dict[str, str]:
    return {role: getattr(table[role], palette) for role in roles}


# Sharma, Wu and Dalal 2005, table 1, pairs 1, 7, 13, 17, 20, 25 and 33.
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    ],
)
def test_our_ciede2000_reproduces_published_pairs(
    first: Triple, second: Triple, expected: float
) -> None:
    assert ciede2000(first, second) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("palette", PALETTES)
def test_axes_and_words_read_as_text_on_the_page(palette: str) -> None:
    paper = getattr(theme.ROLES["paper"], palette)
    for role, ink in inks(theme.ROLES, (*theme.AXES, "ink", "muted"), palette).items():
        assert contrast(ink, paper) >= 4.5, role


@pytest.mark.parametrize("palette", PALETTES)
def test_every_mark_stands_out_from_the_page(palette: str) -> None:
    paper = getattr(theme.ROLES["paper"], palette)
    marks = theme.ROLES.keys() - {"paper", "grid"}
    for role, ink in inks(theme.ROLES, marks, palette).items():
        assert contrast(ink, paper) >= 3, role


@pytest.mark.parametrize("palette", PALETTES)
def test_text_reads_on_every_surface(palette: str) -> None:
    ink = getattr(theme.ROLES["ink"], palette)
    for name, pair in theme.variables().items():
        if name.endswith("-soft") or re.search(r"-(tp|cp|ep|dp|pp)-\d$", name):
            assert contrast(getattr(pair, palette), ink) >= 4.5, name


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("share", [0.28, 0.52, 0.64, 0.76])
def test_text_reads_on_paler_chunks(palette: str, share: float) -> None:
    ink, paper = (getattr(theme.ROLES[role], palette) for role in ("ink", "paper"))
    for role in theme.WORK:
        fill = getattr(theme.SOFT[role], palette)
        mixed = "#" + "".join(
            f"{round(share * over + (1 - share) * under):02x}"
            for over, under in zip(bytes.fromhex(fill[1:]), bytes.fromhex(paper[1:]), strict=True)
        )
        assert contrast(mixed, ink) >= 4.5, role


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(
    ("table", "roles"),
    [(theme.ROLES, theme.AXES), (theme.ROLES, theme.WORK), (theme.SOFT, theme.WORK)],
    ids=["axes", "work-outlines", "work-surfaces"],
)
def test_what_stands_side_by_side_differs_for_every_eye(
    table: dict[str, theme.Ink], roles: tuple[str, ...], palette: str
) -> None:
    for (one, first), (two, second) in itertools.combinations(
        inks(table, roles, palette).items(), 2
    ):
        assert difference(first, second) >= 8, (one, two)


@pytest.mark.parametrize("palette", PALETTES)
def test_ranks_differ_for_every_eye_and_stand_out(palette: str) -> None:
    paper = getattr(theme.ROLES["paper"], palette)
    mains, surfaces = (
        [getattr(ink, palette) for ink in inks] for inks in zip(*theme.RANKS, strict=True)
    )
    for first, second in itertools.combinations(surfaces, 2):
        assert difference(first, second) >= 12
    assert min(contrast(ink, paper) for ink in mains) >= 3


@pytest.mark.parametrize("palette", PALETTES)
def test_no_rank_has_the_colour_of_a_kind_of_work(palette: str) -> None:
    """The home page shows ranks around the forward and backward passes of a step."""
    for role in ("forward", "backward", "exposed"):
        work = getattr(theme.SOFT[role], palette)
        for rank, (_, surface) in enumerate(theme.RANKS):
            near = ciede2000(seen(work), seen(getattr(surface, palette)))
            assert near >= 13, (role, rank)


@pytest.mark.parametrize("palette", PALETTES)
def test_no_colour_of_an_axis_means_a_kind_of_work_or_a_series(palette: str) -> None:
    axes = inks(theme.ROLES, theme.AXES, palette)
    others = inks(theme.ROLES, set(theme.ROLES) - set(theme.AXES), palette)
    for (axis, first), (role, second) in itertools.product(axes.items(), others.items()):
        assert ciede2000(seen(first), seen(second)) >= 10, (axis, role)


@pytest.mark.parametrize("palette", PALETTES)
def test_series_are_clear_colours(palette: str) -> None:
    """Muddy grays used to dominate half of the figures."""
    for index in range(1, 7):
        _, a, b = seen(getattr(theme.ROLES[f"series-{index}"], palette))
        assert math.hypot(a, b) > 25, index


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("axis", theme.AXES)
@pytest.mark.parametrize("distance", [1, 2, 4, 8, 16, 32, 64])
def test_groups_at_a_power_of_two_never_share_a_shade(
    axis: str, distance: int, palette: str
) -> None:
    # Neighbors in a node differ by 1, the nodes of a rack by the group count of one node.
    least = 13 if distance % theme.CYCLE == 1 else 7
    for index in range(theme.CYCLE):
        first = getattr(theme.group_ink(axis, index % theme.CYCLE), palette)
        second = getattr(theme.group_ink(axis, (index + distance) % theme.CYCLE), palette)
        assert ciede2000(seen(first), seen(second)) >= least, index


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("axis", theme.AXES)
def test_consecutive_groups_differ_for_every_eye(axis: str, palette: str) -> None:
    shades = [getattr(theme.group_ink(axis, index), palette) for index in range(theme.CYCLE)]
    for first, second in itertools.pairwise([*shades, shades[0]]):
        assert difference(first, second) >= 8


def test_the_stylesheet_defines_every_variable_that_it_uses() -> None:
    sheet = theme.stylesheet()
    defined = set(re.findall(r"(--fig-[\w-]+):", sheet))
    assert set(re.findall(r"var\((--fig-[\w-]+)\)", sheet)) <= defined
    assert {theme.variable(role) for role in theme.ROLES} <= defined
    assert sheet.count("{") == sheet.count("}")


def test_only_screens_get_the_dark_palette_and_the_switch() -> None:
    always, screen = theme.stylesheet().split("@media screen", 1)
    assert "slate" in screen
    assert ":checked" in screen
    assert "slate" not in always
    assert ":checked" not in always
    assert ".fig-grid .tp-0{fill:var(--fig-tp-0)}" in always


@pytest.mark.parametrize("call", [theme.variable, theme.colour, theme.soft])
def test_an_unknown_role_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(InputError, match="unknown role 'forwards'"):
        call("forwards")


@pytest.mark.parametrize("palette", PALETTES)
def test_series_differ_for_every_eye_from_each_other_and_from_grey(palette: str) -> None:
    """Bars without labels are solid, so only their colors distinguish them."""
    roles = (*(f"series-{number}" for number in range(1, 7)), "neutral")
    for (one, first), (two, second) in itertools.combinations(
        inks(theme.ROLES, roles, palette).items(), 2
    ):
        assert difference(first, second) >= 10, (one, two)


@pytest.mark.parametrize("palette", PALETTES)
def test_no_series_is_taken_for_an_axis_or_for_exposed_messages(palette: str) -> None:
    named = inks(theme.ROLES, (*theme.AXES, "exposed", "idle"), palette)
    for role, ink in inks(theme.ROLES, [f"series-{n}" for n in range(1, 7)], palette).items():
        for other, taken in named.items():
            assert ciede2000(seen(ink), seen(taken)) >= 6, (role, other)
    # Computing stands beside every axis in the bars of a step.
    computing = getattr(theme.ROLES["series-2"], palette)
    for axis in theme.AXES:
        assert difference(computing, getattr(theme.ROLES[axis], palette)) >= 8, axis
