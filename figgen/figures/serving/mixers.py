"""State-space layers: parameters of released models, state per sequence, FLOPs."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.modern_layers import (
    state_space_cache_bytes,
    state_space_parameters,
    state_space_work,
)
from figgen.formulas.serving import cache_bytes_per_token
from figgen.plotting.placed import headings
from figgen.registry import figure


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerModel:
    """A released model of state-space layers, some of whose layers have attention.

    `block` counts a layer's parameters without its mixer or attention, norms included; `table`
    those of its shared embedding and head. `keys` is the width of the keys of an attention layer.
    `printed` is the number of parameters that its authors give.
    """

    title: str
    mixers: int
    hidden: int
    inner: int
    state: int
    heads: int
    block: int
    table: int
    attention: int
    queries: int
    keys: int
    printed: float
    source: str

    @property
    def parameters(self) -> int:
        """All parameters, counted matrix by matrix."""
        mixer = int(
            state_space_parameters(self.hidden, self.inner, self.state, 1, self.heads, CONVOLUTION)
        )
        attention = 2 * self.hidden * (self.queries + self.keys)
        layers = (self.mixers + self.attention) * self.block
        return self.mixers * mixer + self.attention * attention + layers + self.table + self.hidden


CONVOLUTION = 4
CHUNK = 256
GRANITE_BLOCK = 72 * 3 * 4096 * 768 + 3 * 4096 * 1536 + 72 * 4096 + 2 * 4096
"""72 experts and a shared one, the router, two norms."""

MODELS = {
    "mamba_2": MixerModel(
        title="Mamba-2 2.7B",
        mixers=64,
        hidden=2560,
        inner=5120,
        state=128,
        heads=80,
        block=2560,
        table=50288 * 2560,
        attention=0,
        queries=0,
        keys=0,
        printed=2.7e9,
        source="state-spaces/mamba2-2.7b, config.json",
    ),
    "granite": MixerModel(
        title="Granite 4.0 H Small",
        mixers=36,
        hidden=4096,
        inner=8192,
        state=128,
        heads=128,
        block=GRANITE_BLOCK,
        table=100352 * 4096,
        attention=4,
        queries=4096,
        keys=1024,
        printed=32e9,
        source="granite-4.0-h-small, metadata of its file",
    ),
}


@figure("state-space-models")
def state_space_models(*, context: int = 131072) -> Table:
    """Parameters, state per sequence, and FLOPs of a mixer's core against attention's."""
    check_between("context", context, 1, 10**9)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"context": Named(context, "token"), "chunk": Named(CHUNK)}
    for key, found in MODELS.items():
        states = float(
            state_space_cache_bytes(found.mixers, found.inner, found.state, 1, CONVOLUTION, 2)
        )
        cache = float(context * cache_bytes_per_token(found.attention, found.keys, 2))
        core = float(state_space_work(found.inner, found.state, 1, CHUNK))
        # Causal attention as wide as the mixer: scores and values, half of the square.
        attention = 2.0 * context * found.inner
        rows.append(
            (
                found.title,
                f"{found.mixers} + {found.attention}",
                found.parameters,
                found.printed,
                states,
                cache,
                core,
                attention / core,
            )
        )
        values |= {
            f"{key}_parameters": Named(found.parameters),
            f"{key}_states": Named(states, "B"),
            f"{key}_cache": Named(cache, "B"),
            f"{key}_less": Named(attention / core),
        }
    columns = (
        *headings("model", "mixers + attention"),
        Column(label="parameters, counted", spec=","),
        Column(label="printed", spec="si"),
        *headings("states", f"cache of {context:,}", unit="B", spec="bytes"),
        Column(label="core, per token", unit="FLOP", spec="flops"),
        Column(label=f"attention over it at {context:,}", spec=",.0f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
