"""Published tables of the speed of matmuls, by chip, format and shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator
from figgen.catalog.measured_file import FORMATS
from figgen.entries.read import amount, parse_file, read_entry
from figgen.entries.schema import choice, quantity, text
from figgen.errors import EntryPlace, InputError, unknown
from figgen.lookups import remembered

FILE = "product-tables.toml"
KEYS = {"title": text(required=True), "format": choice(*FORMATS, required=True)}
_RATE = quantity("FLOP/s", "1 TFLOP/s", "30 PFLOP/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A matmul of M × K by K × N, or several at once, and its measured rate in FLOP/s.

    `accelerator` is an entry of the catalog, or None for the chip named `chip`.
    """

    chip: str
    accelerator: Accelerator | None
    shape: tuple[int, ...]
    flops_per_s: float

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * prod(self.shape)

    @property
    def seconds(self) -> float:
        """Seconds that it took."""
        return self.flops / self.flops_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTable:
    """A table as its source prints it."""

    name: str
    title: str
    format: str
    products: tuple[Product, ...]
    source: str
    note: str


@remembered(1)
def product_tables() -> Mapping[str, ProductTable]:
    """Return the tables by name."""
    return read_product_tables(load.content(FILE), load.sources(), load.accelerators())


def product_table(name: str) -> ProductTable:
    """Return the table `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in product_tables():
        raise unknown("table of products", name, product_tables())
    return product_tables()[name]


def read_product_tables(
    content: str, sources: Mapping[str, str], accelerators: Mapping[str, Accelerator]
) -> dict[str, ProductTable]:
    """Return the tables of `product-tables.toml`.

    Raises InputError with the place of any mistake.
    """
    found = {}
    for name, table in parse_file(FILE, content).items():
        place = EntryPlace(file=FILE, entry=name, content=content)
        rows = table.pop("rows", None)
        entry = read_entry(place, table, KEYS, sources)
        if not isinstance(rows, list) or not rows:
            raise place.at("rows").fault("missing", expected="a list of [chip, shape, rate]")
        products = tuple(_product(place.at("rows"), row, accelerators) for row in rows)
        found[name] = entry.fill(ProductTable, products=products)
    return found


def _product(place: EntryPlace, row: object, accelerators: Mapping[str, Accelerator]) -> Product:
    if not isinstance(row, list) or len(row) != 3 or not all(isinstance(one, str) for one in row):
        raise place.fault("not a row", expected="[chip, MxNxK, rate]", got=row)
    chip, shape, rate = row
    sizes = shape.split("x")
    if len(sizes) not in (3, 4) or not all(size.isdigit() and int(size) for size in sizes):
        raise place.fault("not a shape", expected="MxNxK, or MxNxKxgroups", got=shape)
    known = accelerators.get(chip)
    if known is None and chip == chip.lower():
        raise InputError(str(unknown(f"{place.file}: accelerator", chip, accelerators)))
    return Product(
        chip=known.title if known else chip,
        accelerator=known,
        shape=tuple(map(int, sizes)),
        flops_per_s=amount(place, rate, _RATE),
    )
