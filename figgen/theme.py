"""The look of each role in light, in dark and on paper; the only module that names colors.

A role is a meaning. It has two inks: the main one (`--fig-<role>`) is for lines, marks, outlines
and colored words, and contrasts with the page (≥ 3:1; ≥ 4.5:1 for the axes, which color text); the
soft one (`--fig-<role>-soft`) fills surfaces behind text in `--fig-ink` (≥ 4.5:1), outlined in the
main ink. Each hue has one meaning: five for the axes of parallelism, six for kinds of work. Series
have no meaning of their own: six clear colors in a fixed order, also distinguished by their order
in the key, and lines by marks and a label at the line. `tests/test_theme.py` measures all this,
including for the three kinds of color blindness.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple

from figgen.errors import InputError, closest, unknown


class Ink(NamedTuple):
    """One role's color in the light and the dark palette."""

    light: str
    dark: str


AXES = ("tp", "cp", "ep", "dp", "pp")
WORK = ("forward", "backward", "backward-input", "backward-weight", "exposed", "hidden", "idle")

ROLES: dict[str, Ink] = {
    # one hue per axis of parallelism
    "tp": Ink("#2a6fbd", "#5497d9"),
    "cp": Ink("#076450", "#8beacd"),
    "ep": Ink("#5a0b91", "#dbbaff"),
    "dp": Ink("#963c00", "#ffa571"),
    "pp": Ink("#c63b6f", "#e25d8a"),
    # one hue per kind of work
    "forward": Ink("#257997", "#81d1f1"),
    "backward": Ink("#9f6700", "#d99e4d"),
    "backward-input": Ink("#9a8e3f", "#ede49e"),
    "backward-weight": Ink("#38336f", "#727abb"),
    "exposed": Ink("#9b1014", "#cb473f"),
    "hidden": Ink("#87686b", "#c8a7ae"),
    "idle": Ink("#878d92", "#6d7277"),
    # series without a meaning of their own: colors that are distinct for all kinds of vision
    "series-1": Ink("#6a7fd2", "#8fa2f5"),
    "series-2": Ink("#c9842c", "#f1d025"),
    "series-3": Ink("#38a280", "#61dde3"),
    "series-4": Ink("#a8564e", "#fb8276"),
    "series-5": Ink("#2c3893", "#756de1"),
    "series-6": Ink("#435502", "#5f9a1f"),
    "neutral": Ink("#6b767d", "#8b969d"),
    "reference": Ink("#5d6b73", "#a3b1ba"),
    "ink": Ink("#1f2529", "#eef2f5"),
    "muted": Ink("#5a646b", "#a9b3ba"),
    "grid": Ink("#e3e7ea", "#363d43"),
    "paper": Ink("#ffffff", "#1e2129"),
}

SOFT: dict[str, Ink] = {
    "tp": Ink("#e0ecfb", "#1d3550"),
    "cp": Ink("#dcf1e9", "#17392f"),
    "ep": Ink("#f1e4fa", "#3b2a4d"),
    "dp": Ink("#fde6da", "#4a2b1a"),
    "pp": Ink("#fce2ea", "#4c2433"),
    "forward": Ink("#91dbf2", "#35718c"),
    "backward": Ink("#e3ac58", "#8d631b"),
    "backward-input": Ink("#f7f3a4", "#413c05"),
    "backward-weight": Ink("#9998cc", "#3c3b70"),
    "exposed": Ink("#e86c66", "#9a282b"),
    "hidden": Ink("#e0c2c4", "#65464c"),
    "idle": Ink("#f1f4f6", "#242729"),
    "neutral": Ink("#edf0f2", "#31383e"),
    "reference": Ink("#edf0f2", "#31383e"),
    "series-1": Ink("#c3cced", "#4d577f"),
    "series-2": Ink("#e9ceab", "#776a27"),
    "series-3": Ink("#afdacc", "#3a7077"),
    "series-4": Ink("#dcbbb8", "#7b4a49"),
    "series-5": Ink("#abafd4", "#434176"),
    "series-6": Ink("#b4bb9a", "#395425"),
}

RANKS: tuple[tuple[Ink, Ink], ...] = (
    (Ink("#5d55a9", "#b0adfb"), Ink("#8b82f1", "#5040a8")),
    (Ink("#5b6c02", "#aec26f"), Ink("#cdea67", "#303b00")),
    (Ink("#047554", "#6ccea6"), Ink("#0cae7e", "#103627")),
    (Ink("#954074", "#ea9bc7"), Ink("#ce88b0", "#723459")),
    (Ink("#3f4f84", "#b9c9f9"), Ink("#a4bbff", "#636e8c")),
    (Ink("#5a5507", "#d1ce99"), Ink("#a19705", "#666005")),
    (Ink("#654274", "#dcbdea"), Ink("#f5e1fe", "#48005f")),
    (Ink("#076246", "#a0dabf"), Ink("#a9ffd9", "#057957")),
)
"""The main ink and the surface of the first eight ranks, where ranks are distinguished. Violets,
greens and pinks: cyan, amber and red are reserved for kinds of work."""

LABELS: dict[str, str] = (
    {
        "backward-input": "backward for inputs",
        "backward-weight": "backward for weights",
        "exposed": "exposed communication",
        "hidden": "hidden communication",
        "neutral": "other work",
    }
    | {axis: axis.upper() for axis in AXES}
    | {f"rank-{r}": f"rank {r}" for r in range(len(RANKS))}
)
"""The labels of roles in legends, where they differ from their names."""

COMMUNICATORS: dict[str, str] = {
    "tp": "tp", "cp": "cp", "dp": "dp", "pp": "pp", "ep": "ep", "etp": "tp", "edp": "dp",
    "dp-cp": "dp", "cp-dp": "dp", "tp-cp": "tp", "tp-dp": "tp", "tp-pp": "tp", "tp-dp-cp": "tp",
    "etp-ep": "ep", "ep-edp": "ep", "etp-ep-pp": "ep",
}  # fmt: skip
"""Maps each communicator to the axis whose hue its groups have."""

CYCLE = 7
"""Shades per axis. Coprime to the powers of two by which group indices increase, so that adjacent
groups, or groups one node apart, never share a shade."""

# Base OKLCH hue and chroma of the shades of an axis's groups.
_GROUP_HUES = {
    "tp": (252, 0.11),
    "cp": (172, 0.09),
    "ep": (304, 0.11),
    "dp": (55, 0.11),
    "pp": (0, 0.12),
}
# OKLCH lightness; text in `ink` has a contrast of 4.5:1 at each value.
_LIGHT_STEPS = (0.95, 0.90, 0.85, 0.80, 0.75, 0.705, 0.66)
_DARK_STEPS = (0.28, 0.325, 0.37, 0.41, 0.45, 0.49, 0.525)


def variable(role: str) -> str:
    """Return the CSS variable of a role's main color, such as `--fig-forward`."""
    if role not in ROLES:
        general = [name for name in ROLES if name not in (*AXES, *WORK, "grid", "paper")]
        expected = f"{', '.join(general)}, or of training {', '.join((*AXES, *WORK))}"
        raise InputError(f"unknown role {role!r}", expected=expected, nearest=closest(role, ROLES))
    return f"--fig-{role}"


def colour(role: str) -> str:
    """Return the CSS value of a role's main color: lines, marks, outlines, colored words."""
    if _is_rank(role):
        return f"var(--fig-{role})"
    return f"var({variable(_group(role)[0])})"


def soft(role: str) -> str:
    """Return the CSS value of a role's surface color, for text in `ink` and main outlines.

    `cp-3` is the surface of the fourth group of an axis.
    """
    axis, index = _group(role)
    if index is not None:
        return f"var(--fig-{axis}-{index % CYCLE})"
    if role not in SOFT and not _is_rank(role):
        raise unknown("role", role, SOFT)
    return f"var(--fig-{role}-soft)"


def _is_rank(role: str) -> bool:
    """Return whether a role is `rank-0` to `rank-7`."""
    rank = role.removeprefix("rank-")
    return rank != role and rank.isdigit() and int(rank) < len(RANKS)


def _group(role: str) -> tuple[str, int | None]:
    axis, _, index = role.partition("-")
    return (axis, int(index)) if axis in AXES and index.isdigit() else (role, None)


def label(role: str) -> str:
    """Return the name of a role for readers."""
    return LABELS.get(role, role)


def group_ink(axis: str, index: int) -> Ink:
    """Return the fill of group `index` of an axis, a variation of the axis's lightness and hue.

    Consecutive groups are three steps of lightness apart, and the hue turns in alternating
    directions, so that neighboring steps are distinguishable.
    """
    hue, chroma = _GROUP_HUES[axis]
    step = 3 * index % CYCLE
    turned = hue + (18 if step % 2 else -18)
    light = _hex(_LIGHT_STEPS[step], chroma * (0.45 + 0.55 * step / 6), turned)
    dark = _hex(_DARK_STEPS[step], chroma * (0.6 + 0.4 * step / 6), turned)
    return Ink(light, dark)


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """Convert OKLCH (Ottosson 2020) to sRGB; reduce chroma if it is out of gamut."""
    while True:
        a = chroma * math.cos(math.radians(hue))
        b = chroma * math.sin(math.radians(hue))
        long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
        medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
        short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
        linear = (
            4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
        )
        if all(-1e-4 <= part <= 1.0001 for part in linear):
            return "#" + "".join(f"{round(255 * _gamma(part)):02x}" for part in linear)
        chroma -= 0.002


def _gamma(linear: float) -> float:
    part = min(1.0, max(0.0, linear))
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


@cache
def variables() -> dict[str, Ink]:
    """Return every CSS variable with its ink in the two palettes."""
    inks = {f"--fig-{name}": ink for name, ink in ROLES.items()}
    inks |= {f"--fig-{name}-soft": ink for name, ink in SOFT.items()}
    for rank, (main, surface) in enumerate(RANKS):
        inks |= {f"--fig-rank-{rank}": main, f"--fig-rank-{rank}-soft": surface}
    return inks | {
        f"--fig-{axis}-{index}": group_ink(axis, index) for axis in AXES for index in range(CYCLE)
    }


@cache
def rules() -> dict[str, str]:
    """Return declarations by selector for the classes of figures, before any choice is made."""
    found = {f".fig .r-{role}": f"fill:{soft(role)};stroke:{colour(role)}" for role in SOFT}
    for rank in range(len(RANKS)):
        name = f"rank-{rank}"
        found[f".fig .r-{name}"] = f"fill:var(--fig-{name}-soft);stroke:var(--fig-{name})"
    found[".fig-grid .cells"] = f"fill:{soft('neutral')};stroke:{colour('tp')}"
    found[".fig-grid .of"] = "display:none"
    found[".fig-grid .of-tp"] = "display:inline"
    return found | {
        f".fig-grid .tp-{index}": f"fill:var(--fig-tp-{index})" for index in range(CYCLE)
    }


def _switch() -> str:
    """Return the rules by which a checked radio button recolors the grid after its fieldset.

    They select siblings, since a figure may have a panel with its own choice for every preset.
    """

    def chosen(value: str) -> str:
        return f'.fig-controls:has([value="{value}"]:checked)~.fig-scroll '

    lines = [
        ".fig-controls:has(:checked)~.fig-scroll .of{display:none}",
        f"{chosen('none')}.cells{{stroke:{colour('neutral')}}}",
        f"{chosen('none')}.cells rect{{fill:{soft('neutral')}}}",
    ]
    for name, axis in COMMUNICATORS.items():
        lines.append(f"{chosen(name)}.of-{name}{{display:inline}}")
        lines.append(f"{chosen(name)}.cells{{stroke:{colour(axis)}}}")
        lines += [
            f"{chosen(name)}.{name}-{index}{{fill:var(--fig-{axis}-{index})}}"
            for index in range(CYCLE)
        ]
    return "\n".join(lines)


def stylesheet() -> str:
    """Return all variables and rules. Paper gets the light palette and TP groups."""

    def block(selector: str, palette: str) -> str:
        inks = variables()
        values = ";".join(f"{name}:{getattr(ink, palette)}" for name, ink in inks.items())
        return f"{selector}{{{values}}}"

    dark = block('[data-md-color-scheme="slate"]', "dark")
    drawn = "\n".join(f"{selector}{{{declared}}}" for selector, declared in rules().items())
    return f"{block(':root', 'light')}\n{drawn}\n@media screen{{\n{dark}\n{_switch()}\n}}\n"


def embedded(svg: str) -> str:
    """Return the part of the stylesheet that `svg` uses, for a standalone file."""
    classes = set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', svg))))
    used = {
        selector: declared
        for selector, declared in rules().items()
        if selector.rpartition(".")[2] in classes
    }
    drawn = "".join(f"{selector}{{{declared}}}" for selector, declared in used.items())
    names = set(re.findall(r"var\((--[\w-]+)\)", svg + drawn)) | {"--fig-paper"}
    inks = {name: ink for name, ink in variables().items() if name in names}
    light = ";".join(f"{name}:{ink.light}" for name, ink in inks.items())
    dark = ";".join(f"{name}:{ink.dark}" for name, ink in inks.items())
    return f"svg{{{light}}}@media screen and (prefers-color-scheme:dark){{svg{{{dark}}}}}{drawn}"
