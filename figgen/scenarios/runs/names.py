"""Maps the names that sources give chips, networks, formats, frameworks and models to ours.

Benchmark tables write "H100 SXM 80GB (DGX H100 class)", "NVIDIA Blackwell GPU (GB200)", "float8
rowwise". Each list is tried from the top, so more specific names come first.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.models import Model
from figgen.errors import InputError, unknown
from figgen.lookups import remembered
from figgen.models.setup.training_setup import DISPATCHERS
from figgen.models.shape.recomputation import NAMED, recomputation

CHIPS = (
    (r"h100.*(96 ?gb|hbm2e)(?!.*pcie)", "h100-hbm2e-96gb"),
    (r"h100.*nvl\b", "h100-nvl-94gb"),
    (r"h100.*pcie", "h100-pcie-80gb"),
    (r"gb300", "gb300-nvl72"),
    (r"gb200", "gb200-nvl72"),
    (r"gb10\b|dgx spark", "gb10"),
    (r"gh200.*(144|141) ?gb", "gh200-144gb"),
    (r"gh200|grace hopper", "gh200-96gb"),
    (r"b300", "b300-sxm-hgx"),
    (r"b200", "b200-sxm-hgx"),
    (r"h200", "h200-sxm-141gb"),
    (r"h800", "h800-sxm-80gb"),
    (r"h100", "h100-sxm-80gb"),
    (r"h20\b", "h20-sxm-96gb"),
    (r"pro 6000", "rtx-pro-6000"),
    (r"6000 ?ada", "rtx-6000-ada"),
    (r"a6000\b", "rtx-a6000"),
    (r"a5000\b", "rtx-a5000"),
    (r"(rtx|geforce|\b) ?3090", "rtx-3090"),
    (r"(rtx|geforce|\b) ?4090", "rtx-4090"),
    (r"(rtx|geforce|\b) ?5090", "rtx-5090"),
    (r"\bl40s", "l40s"),
    (r"\bl4\b", "l4"),
    (r"\ba10\b", "a10"),
    (r"a100.*pcie.*80 ?gb|a100.*80 ?gb.*pcie", "a100-pcie-80gb"),
    (r"a100.*pcie", "a100-pcie-40gb"),
    (r"a100.*40 ?gb", "a100-sxm-40gb"),
    (r"a800", "a800-sxm-80gb"),
    (r"a100|ampere", "a100-sxm-80gb"),
    (r"v100.*16 ?gb", "v100-sxm2-16gb"),
    (r"v100", "v100-sxm2-32gb"),
    (r"mi250x", "mi250x"),
    (r"mi250", "mi250"),
    (r"mi300x?", "mi300x"),
    (r"mi325x?", "mi325x"),
    (r"mi350x?", "mi350x"),
    (r"mi35\dx?", "mi355x"),
    (r"mi4[05]\dx?", "mi455x"),
    (r"(vera )?rubin|vr200", "vera-rubin-nvl72"),
    (r"v5p", "tpu-v5p"),
    (r"v5e|v5litepod", "tpu-v5e"),
    (r"v6e|trillium", "tpu-v6e"),
    (r"tpu.*v7|ironwood", "tpu-v7"),
    (r"tpu.*v4", "tpu-v4"),
    (r"gaudi ?3", "gaudi3"),
    (r"gaudi ?2|hl-?225", "gaudi2"),
    (r"gaudi( ?1\b)?|hl-?205", "gaudi1"),
    (r"trainium ?2|trn2", "trainium2"),
    (r"trainium ?3|trn3", "trainium3"),
    (r"trainium( ?1\b)?|trn1", "trainium1"),
    (r"(ascend )?910b\d?|ascend", "ascend-910b"),
)

BESIDE = (
    r"(nvidia|amd|intel|huawei|aws|google|habana|instinct|geforce|tesla|quadro|rtx|gpu|tpu|npu|"
    r"sxm ?\d?|pcie|nvl ?\d*|dgx|hgx|oam|hbm ?\d?e?|gen ?\d|x16|blackwell|hopper|ampere|ada|"
    r"superchip|server|workstation|max ?q|edition|\d+ ?gi?b)"
)
"""Words that may accompany a chip's name."""

OTHERS = r"\s*(" + BESIDE + r"\s*)*"

NETWORKS = (
    (r"efa", "efa-v2-p5"),
    (r"omni-?path", "omni-path-100"),
    (r"roce.*1600 ?gb/?s|1600 ?gb/?s.*roce|8x200g|8 ?x ?200", "roce-200g"),
    (r"selene", "ib-hdr"),
    (r"roce", "roce-400g"),
    (r"xdr", "ib-xdr"),
    (r"ndr|400 ?gb/?s", "ib-ndr"),
    (r"hdr", "ib-hdr"),
)

PORTS = r"(\d+) ?[x×] ?(\d+) ?g(?:b(?:it)?)?(?:/s|ps)?\b"
PER_NODE = r"([\d.]+) ?(g|t)(?:b(?:it)?)(?:/s|ps) (?:per|a|each) (?:node|instance|machine)"
PER_GPU = r"([\d.]+) ?(g|t)(?:b(?:it)?)(?:/s|ps) (?:per|a|each) (?:gpu|accelerator|chip|rank)"
"""Rates of a network in words: `8x400 Gb/s` (ports of a node), or one rate for a node or a GPU."""

USUAL_NETWORK = "ib-ndr"
"""Networks of chips that `assumptions.toml` does not cover."""

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
"""Low-precision recipes by the words of sources; `DTYPE_OF` gives the type of their matmuls."""

DTYPE_OF = {
    "nvfp4": "fp4", "mxfp8": "fp8", "fp8-current": "fp8", "fp8-rowwise": "fp8", "fp8": "fp8",
    "bf16": "bf16", "fp16": "fp16", "tf32": "tf32",
}  # fmt: skip

UNKNOWN_SOFTWARE = "unknown"
"""The framework of a run whose source names one that is not known here."""

FRAMEWORKS = (
    (r"nanotron", "nanotron"),
    (r"foundry|composer|mosaic", "llm-foundry"),
    (r"torchtitan", "torchtitan"),
    (r"deepseek_v3\.pdf|2412\.19437", "deepseek"),
    (r"maxtext", "maxtext"),
    (r"paxml|praxis", "paxml"),
    (r"^deepspeed|automodel", "pytorch"),
    (r"megatron-deepspeed|deepspeed.*megatron|bloom|mt-nlg|glm", "megatron-deepspeed"),
    (r"bridge", "megatron-bridge"),
    (r"megascale|veomni", "megascale"),
    (r"nemo", "nemo"),
    (r"megatron|mcore|narayanan|korthikanti|mindspeed|primus", "megatron-lm"),
    (r"mlperf", "nemo"),
    (r"torchtune", "torchtune"),
    (r"metaseq|fairscale|^fsdp$|2407\.21783|^llama-3: table", "fsdp"),
    (
        r"fsdp|torch(?!prime|.?xla)|deepspeed|lit-?gpt|nanogpt|nanochat|\bhf\b|hugging ?face|"
        r"transformers|optimum|accelerate|lightning|llama-?factory|axolotl|unsloth|\btrl\b|\bddp\b|swift",
        "pytorch",
    ),
)
DISPATCH = (
    (r"hybrid", "hybridep"),
    (r"deepep|flex", "deepep"),
    (r"all-?to-?all|a2a", "all-to-all"),
    (r"all-?gather|usual", "usual"),
)
"""Dispatchers of tokens to experts; "flex" is Megatron-Core's name for DeepEP's."""

HABITS = (
    (r"prime-rl.*-sft-", "prime-rl-logits"),
    (r"prime-rl", "prime-rl"),
    (r"^deepspeed", "deepspeed"),
    (r"^(?!torchtitan|llm-foundry|composer|mosaic)(\S+ )?\S*fsdp", "fsdp"),
    (r"hf trainer|hugging ?face|\bhf\b", "hf-trainer"),
)
"""Software that fills memory in its own way but is timed as other software, by framework and id."""

MAXTEXT_POLICIES = {
    "minimal_with_context": "none", "minimal_flash": "none", "minimal": "core_attn",
    "save_dot_with_context_except_mlp": "mlp", "save_dot_except_mlp": "core_attn,mlp",
    "save_dot_except_mlpwi": "core_attn,mlp", "save_qkv_proj": "core_attn,mlp",
    "save_out_proj": "full",
}  # fmt: skip
"""What MaxText's `remat_policy` recomputes, by the first word of a source (AI-Hypercomputer/maxtext
at e591f30c, src/maxtext/layers/decoders.py, `get_remat_policy`).

`save_qkv_proj` also recomputes the output projection, at most an eighth of a layer of Llama, and
XLA omits the second matmul of the feed-forward block, which is counted.
"""

NOT_GIVEN = (
    r"unstated|unknown|unspecified|not (stated|said|given|printed|known)|n/?a|default|usual|"
)
"""Words that mean "not given"."""

OFF = r"false|off|no|none|disabled|without|never|0"
ON = r"true|on|yes|enabled|with|always|1"

SWITCHED = (
    (OFF, "none"),
    (ON + r"|(gradient|activation)[ _-]checkpointing|ac", "full"),
    (r"sac", "selective"),
)
"""What is recomputed if a source only says whether."""

RECOMPUTED = (
    (r"norm", ("layernorm", "latent_norm")),
    (r"mla[ _-]up", ("mla_up_proj",)),
    (r"swiglu", ("moe_act",)),
    (r"save_qkv_out_proj", ("mlp",)),
)
"""Modules of `figgen.models.shape.recomputation` by the names that reports give them.

Paxml's SAVE_QKV_OUT_PROJ keeps the projections of attention and recomputes its core and the
feed-forward block (google/praxis@5ae5e1b5, praxis/layers/checkpoint_policy.py). XLA can omit the
second matmul of that block, and of a layer that is recomputed whole; here both count it.
"""


# Thousands of runs use the same few words.
@lru_cache(maxsize=1024)
def recompute_of(words: str) -> str:
    """Return what is recomputed, as in `figgen.models.shape.recomputation`; "" if not given.

    Words that name neither layers nor modules ("a portion of the operators") are "selective".
    """
    low = words.strip().lower()
    if re.fullmatch(NOT_GIVEN, low):
        return ""
    for pattern, name in SWITCHED:
        if re.fullmatch(pattern, low):
            return name
    policy = MAXTEXT_POLICIES.get(low.split()[0]) if low else None
    if policy is not None:
        return policy
    with suppress(InputError):
        recomputation(written := low.replace(" ", ""))
        return written
    behind = low.removeprefix("selective").strip(" ,:+")
    if behind not in ("", low):
        return recompute_of(behind)
    named = next((name for name in NAMED if low.startswith(name)), "")
    modules = [name for words, names in RECOMPUTED if re.search(words, low) for name in names]
    return named or ",".join(modules) or ("selective" if low else "")


@lru_cache(maxsize=1024)
def first_match(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    """Return the value of the first pattern that matches `text`, or None."""
    low = text.lower()
    return next((name for pattern, name in table if re.search(pattern, low)), None)


def dispatcher_of(words: str) -> str:
    """Return the dispatcher of tokens to experts, the release's default if none is given.

    Raises InputError for words that name none.
    """
    found = first_match(DISPATCH, words) if words else "usual"
    if found is None:
        raise unknown("dispatcher", words, DISPATCHERS)
    return found


def accelerator_of(words: str) -> Accelerator:
    """Return the chip that `words` describe. Raises InputError if the catalog lacks it."""
    known = load.accelerators.names()
    name = words if words in known else first_match(CHIPS, spaced(words))
    if name is None:
        raise unknown("hardware", words, known)
    return load.accelerators.only(name)[name]


def spaced(words: str) -> str:
    """Normalize words as `CHIPS` expects them: `A100-PCIe-40GB` becomes `a100 pcie 40gb`."""
    return re.sub(r"[\s_-]+", " ", words.lower()).strip()


def named_chip(words: str) -> str | None:
    """Return the catalog's name of a chip such as `RTX 4090`, `h100 pcie` or `H20`.

    Returns None for words that describe more than a chip, or no chip.
    """
    return chip_among(words, list(load.accelerators.names()))


def chip_among(words: str, known: list[str]) -> str | None:
    """Return the name of a chip in a catalog of the names in `known`, or None."""
    if words in known:
        return words
    text = spaced(words)
    for pattern, name in CHIPS:
        found = re.search(pattern, text)
        if found is None:
            continue
        before, _, behind = text.partition(found[0])
        return name if re.fullmatch(OTHERS, f"{before} {behind}") is not None else None
    return None


def network_of(words: str, chip: Accelerator) -> Link:
    """Return the network link of each GPU, from `words` or the usual one for the chip.

    A rate that `words` give per node or per GPU replaces that of the link.
    """
    if words in load.links.names():
        return load.links.only(words)[words]
    usual = networks_of_chips().get(chip.name, USUAL_NETWORK)
    found = first_match(NETWORKS, words) or usual
    link = load.links.only(found)[found]
    printed = printed_rate(words)
    return link if printed is None else with_rate(link, *printed)


def printed_rate(words: str) -> tuple[float, str] | None:
    """Return a rate in B/s per direction and its owner, "node" or "GPU"; None if there is none."""
    low = words.lower()
    ports, width = re.search(PORTS, low), re.search(r"node of (\d+) gpus", low)
    if ports:
        rate = int(ports[1]) * int(ports[2]) * 1e9 / 8
        return (rate / int(width[1]), "GPU") if width else (rate, "node")
    for pattern, whose in ((PER_NODE, "node"), (PER_GPU, "GPU")):
        found = re.search(pattern, low)
        if found:
            return float(found[1]) * {"g": 1e9, "t": 1e12}[found[2]] / 8, whose
    return None


def with_rate(link: Link, bytes_per_s: float, per: str) -> Link:
    """Return a link with the rate that a source gives."""
    printed = f"{bytes_per_s / 1e9:g} GB/s"
    rate = replace(link.bandwidth, value=bytes_per_s, low=None, high=None, printed=printed)
    return replace(link, bandwidth=rate, per=per)


@cache
def networks_of_chips() -> Mapping[str, str]:
    """Return the network port per GPU in shipping systems, by the chip's name."""
    entries = tomllib.loads(load.content("assumptions.toml")).values()
    return {
        chip: entry["nic"]
        for entry in entries
        if "nic" in entry and "runs" not in entry
        for chip in entry.get("accelerators", ())
    }


def format_of(words: str) -> str:
    """Return the low-precision recipe that `words` name. Raises InputError for none."""
    found = first_match(FORMATS, words)
    if found is None:
        raise InputError("precision", expected=" or ".join(DTYPE_OF), got=words)
    return found


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """Reduce a name so that spellings agree, such as "gpt3-175b" and "GPT-3 175B"."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


ALIASES = {"gpt2xl": "gpt-2-xl", "qwen3a22b": "qwen-3-235b-a22b", "llama31405b": "llama-3-405b"}


def model_of(name: str) -> Model | None:
    """Return the catalog's model of that name in any spelling, or None."""
    known, wanted = _plain_names(), plain(name)
    other = known.get(wanted.replace("llama31", "llama3"))
    found = ALIASES.get(wanted) or known.get(wanted) or other
    return load.models.only(found)[found] if found else None


@remembered(1)
def _plain_names() -> Mapping[str, str]:
    return {plain(name): name for name in load.models.names()}
