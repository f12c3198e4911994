"""What a house loses through its walls, windows and roof: a site of another field."""

from pathlib import Path

from figgen.author import (
    Axis,
    Bars,
    Column,
    Curves,
    Mark,
    Named,
    Segment,
    Series,
    Subject,
    Table,
    catalog,
    evaluate,
    figure,
    formulas,
    positive,
    quantity,
    shown,
    text,
    unit,
)

unit("m²")
unit("K")
unit("kWh", is_="3.6 MJ")

formula = formulas(
    positive("area", "A", "m²", "area of a part of the house's shell"),
    positive("transmittance", "U", "W/m²/K", "heat that passes, by area and difference"),
    positive("difference", r"\Delta T", "K", "inside temperature less the outside one"),
    positive("power", "P", "W", "heating power"),
    positive("hours", "t", "s", "time of heating"),
)


@formula(symbol=r"\dot Q", unit="W", source="ISO 6946")
def heat_loss(area, transmittance, difference):
    """Heat that a part of the shell lets pass in a steady state."""
    return transmittance * area * difference


@formula(symbol="E", unit="J", source="definition of power")
def heating_energy(power, hours):
    """Energy that a heating of constant power gives in a time."""
    return power * hours


house = catalog(
    "house",
    Path(__file__).with_name("houses.toml"),
    title=text(required=True),
    **{
        f"{part}_{what}": bound
        for part in ("walls", "windows", "roof")
        for what, bound in {
            "area": quantity("m²", "1 m²", "2000 m²", required=True),
            "transmittance": quantity("W/m²/K", "0.05 W/m²/K", "7 W/m²/K", required=True),
        }.items()
    },
)
PARTS = ("walls", "windows", "roof")


def losses(name: str, difference: float) -> dict[str, float]:
    """The loss of each part of a house, in W."""
    found = house(name)
    return {
        part: evaluate(
            "heat_loss",
            area=getattr(found, f"{part}_area").value,
            transmittance=getattr(found, f"{part}_transmittance").value,
            difference=difference,
        ).value
        for part in PARTS
    }


@figure("heat-by-part")
def heat_by_part(*, preset: str, differences: tuple[float, ...] = (10, 20, 30)) -> Bars:
    """What each part of a house loses, by the difference of temperatures."""
    by_difference = [losses(preset, difference) for difference in differences]
    return Bars(
        labels=tuple(f"{difference:g} K" for difference in differences),
        segments=tuple(
            Segment(
                name=part,
                role=f"series-{number}",
                lengths=tuple(found[part] for found in by_difference),
            )
            for number, part in enumerate(PARTS, 1)
        ),
        axis=Axis(label="heat loss", unit="W", low=0),
        values={
            "total": Named(sum(by_difference[-1].values()), "W"),
            "windows_share": Named(by_difference[-1]["windows"] / sum(by_difference[-1].values())),
        },
    )


@figure("heat-by-wall", explorable=True)
def heat_by_wall(*, transmittances: tuple[float, ...], area: float = 100) -> Curves:
    """The loss of a wall by the difference of temperatures, one line for each wall."""
    differences = tuple(float(kelvin) for kelvin in range(1, 41))
    lines = [
        Series(
            name=f"{u:g} W/m²/K",
            x=differences,
            y=tuple(
                evaluate("heat_loss", area=area, transmittance=u, difference=kelvin).value
                for kelvin in differences
            ),
            role=f"series-{number}",
        )
        for number, u in enumerate(transmittances, 1)
    ]
    return Curves(
        x=Axis(label="difference of temperatures", unit="K", low=0),
        y=Axis(label="heat loss", unit="W", low=0),
        series=tuple(lines),
        values={"most": Named(max(lines[-1].y), "W")},
    )


@figure("houses")
def houses(*, names: tuple[str, ...]) -> Table:
    """Houses side by side."""
    return Table(
        columns=(Column(label="house"), Column(label="loss at 20 K", unit="W")),
        rows=tuple((house(name).title, sum(losses(name, 20).values())) for name in names),
    )


@figure("heat-by-hour", explorable=True)
def heat_by_hour(*, power: float = 6000) -> Curves:
    """The heat that a heating of some power has given after each hour of a day."""
    times_s = tuple(3600.0 * hour for hour in range(1, 25))
    heats = tuple(evaluate("heating_energy", power=power, hours=t).value for t in times_s)
    day = shown(heats[-1], "J", "in.2 kWh")
    return Curves(
        x=Axis(label="time", unit="s", spec="in h", low=0),
        y=Axis(label="heat", unit="J", spec="in kWh", low=0),
        series=(Series(name="heating", x=times_s, y=heats, role="series-1"),),
        marks=(Mark(x=times_s[-1], y=heats[-1], label=day, role="series-2"),),
        values={"day": Named(heats[-1], "J")},
    )


SUBJECT = Subject(preset_title=lambda name: house(name).title)
