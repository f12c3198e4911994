"""What sources call chips, networks, number formats, frameworks and models, and what we call them.

Benchmark tables write "H100 SXM 80GB (DGX H100 class)", "NVIDIA Blackwell GPU (GB200)",
"float8 rowwise". Each list is tried from its top, so that what is more special stands first.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.models import Model
from figgen.errors import InputError, unknown
from figgen.lookups import remembered
from figgen.models.shape.recomputation import NAMED, recomputation

CHIPS = (
    (r"h100.*(96 ?gb|hbm2e)", "h100-hbm2e-96gb"),
    (r"gb300", "gb300-nvl72"),
    (r"gb200", "gb200-nvl72"),
    (r"b300", "b300-sxm-hgx"),
    (r"b200", "b200-sxm-hgx"),
    (r"h200", "h200-sxm-141gb"),
    (r"h800", "h800-sxm-80gb"),
    (r"h100", "h100-sxm-80gb"),
    (r"h20\b", "h20-sxm-96gb"),
    (r"a100.*40 ?gb", "a100-sxm-40gb"),
    (r"a100|a800|ampere", "a100-sxm-80gb"),
    (r"v100", "v100-sxm2-32gb"),
    (r"mi300", "mi300x"),
    (r"mi325", "mi325x"),
    (r"mi350", "mi350x"),
    (r"mi35\d", "mi355x"),
    (r"v5p", "tpu-v5p"),
    (r"v5e|v5litepod", "tpu-v5e"),
    (r"v6e|trillium", "tpu-v6e"),
    (r"tpu.*v7|ironwood", "tpu-v7"),
    (r"tpu.*v4", "tpu-v4"),
    (r"gaudi ?3", "gaudi3"),
    (r"trainium ?2|trn2", "trainium2"),
    (r"trainium ?3|trn3", "trainium3"),
)

NETWORKS = (
    (r"efa", "efa-v2-p5"),
    (r"roce.*1600 ?gb/?s|1600 ?gb/?s.*roce|8x200g|8 ?x ?200", "roce-200g"),
    (r"selene", "ib-hdr"),
    (r"roce", "roce-400g"),
    (r"xdr", "ib-xdr"),
    (r"ndr|400 ?gb/?s", "ib-ndr"),
    (r"hdr", "ib-hdr"),
)

USUAL_NETWORK = "ib-ndr"
"""Of chips of which `assumptions.toml` says nothing."""

FORMATS = (
    (r"nvfp4|fp4", "nvfp4"),
    (r"mxfp8", "mxfp8"),
    (r"(fp8|float8).*row", "fp8-rowwise"),
    (r"(fp8|float8).*(cs|current)", "fp8-current"),
    (r"fp8|float8", "fp8"),
    (r"bf16", "bf16"),
    (r"fp16|half", "fp16"),
    (r"fp32|tf32", "tf32"),
)
"""A recipe of low precision by what its source prints; its products' type is `DTYPE_OF`."""

DTYPE_OF = {
    "nvfp4": "fp4", "mxfp8": "fp8", "fp8-current": "fp8", "fp8-rowwise": "fp8", "fp8": "fp8",
    "bf16": "bf16", "fp16": "fp16", "tf32": "tf32",
}  # fmt: skip

FRAMEWORKS = (
    (r"nanotron", "nanotron"),
    (r"foundry|composer|mosaic", "llm-foundry"),
    (r"torchtitan", "torchtitan"),
    (r"deepseek_v3\.pdf|2412\.19437", "deepseek"),
    (r"maxtext", "maxtext"),
    (r"paxml|praxis", "paxml"),
    (r"deepspeed|bloom|mt-nlg|glm", "megatron-deepspeed"),
    (r"bridge", "megatron-bridge"),
    (r"megascale|veomni", "megascale"),
    (r"nemo", "nemo"),
    (r"megatron|mcore|narayanan|korthikanti", "megatron-lm"),
    (r"mlperf", "nemo"),
    (r"fsdp|metaseq|fairscale|2407\.21783|^llama-3: table", "fsdp"),
)


RECOMPUTED = (
    (r"norm", ("layernorm", "latent_norm")),
    (r"mla[ _-]up", ("mla_up_proj",)),
    (r"swiglu", ("moe_act",)),
)
"""Modules of `figgen.models.shape.recomputation` by what reports call them."""


# Thousands of runs are described with the same few words.
@lru_cache(maxsize=1024)
def recompute_of(words: str) -> str:
    """What is recomputed as `figgen.models.shape.recomputation` reads it; "" where nothing is said.

    Words that name neither layers nor modules ("a portion of the operators") are "selective".
    """
    low = words.strip().lower()
    with suppress(InputError):
        recomputation(written := low.replace(" ", ""))
        return written
    named = next((name for name in NAMED if low.startswith(name)), "")
    modules = [name for words, names in RECOMPUTED if re.search(words, low) for name in names]
    return named or ",".join(modules) or ("selective" if low else "")


@lru_cache(maxsize=1024)
def first_match(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    """What the first pattern that `text` holds stands for."""
    low = text.lower()
    return next((name for pattern, name in table if re.search(pattern, low)), None)


def accelerator_of(words: str) -> Accelerator:
    """The chip that `words` describe. Raises InputError for one that the catalog lacks."""
    known = load.accelerators.names()
    name = words if words in known else first_match(CHIPS, words)
    if name is None:
        raise unknown("hardware", words, known)
    return load.accelerators.only(name)[name]


def network_of(words: str, chip: Accelerator) -> Link:
    """The network link of each GPU: as `words` say, or what is usual for the chip."""
    if words in load.links.names():
        found = words
    else:
        usual = networks_of_chips().get(chip.name, USUAL_NETWORK)
        found = first_match(NETWORKS, words) or usual
    return load.links.only(found)[found]


@cache
def networks_of_chips() -> Mapping[str, str]:
    """The port that each GPU of a kind has in systems that ship, by the kind's name."""
    entries = tomllib.loads(load.content("assumptions.toml")).values()
    return {
        chip: entry["nic"]
        for entry in entries
        if "nic" in entry and "runs" not in entry
        for chip in entry.get("accelerators", ())
    }


def format_of(words: str) -> str:
    """The recipe of low precision that `words` name. Raises InputError for none."""
    found = first_match(FORMATS, words)
    if found is None:
        raise InputError("precision", expected=" or ".join(DTYPE_OF), got=words)
    return found


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """A name without what sources write differently: "gpt3-175b" and "GPT-3 175B" are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


ALIASES = {"gpt2xl": "gpt-2-xl", "qwen3a22b": "qwen-3-235b-a22b", "llama31405b": "llama-3-405b"}


def model_of(name: str) -> Model | None:
    """The catalog's model of that name, spelled as sources do; None where it has none."""
    known, wanted = _plain_names(), plain(name)
    other = known.get(wanted.replace("llama31", "llama3"))
    found = ALIASES.get(wanted) or known.get(wanted) or other
    return load.models.only(found)[found] if found else None


@remembered(1)
def _plain_names() -> Mapping[str, str]:
    return {plain(name): name for name in load.models.names()}
