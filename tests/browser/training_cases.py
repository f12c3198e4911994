"""Training steps for the browser to compute, and the command line's answers.

A case is an argument of `jobOf` in the tools' engine: choices by name, or a reader's own numbers.
"""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from typing import Any

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.hardware import Chip
from figgen.models.memory.memory import memory
from figgen.models.setup.training_setup import (
    CUDA_GRAPHS,
    DISPATCHERS,
    EXPERT_OVERLAPS,
    TrainingSetup,
)
from figgen.models.shape.activation_formats import FORMATS
from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape, StateSpace
from figgen.models.shape.recipes import RECIPES
from figgen.models.shape.recomputation import MODULES, NAMED
from figgen.models.step.attained import check_time_factor
from figgen.models.step.predicted_parts import computing_share, predicted_parts
from figgen.models.step.step import step, step_stages
from figgen.scenarios.options.hardware_of import known_cluster
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.options.setup_of import setup_of
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.runs.software import known_software, memory_of
from figgen.scenarios.runs.step_as_run import predicted
from figgen.scenarios.tools.answers import (
    buckets_data,
    memory_data,
    muon_data,
    setup_data,
    step_data,
)

Choices = dict[str, Any]
UNTIMED = 0.5


def answered(choices: Choices) -> Any:
    """Return what `figgen step --json` and `figgen memory --json` print, or their error message."""
    try:
        return json.loads(json.dumps(_answered(choices)))
    except InputError as error:
        return {"error": str(error)}


def _values(choices: Choices) -> Choices:
    values = {name: option.default for name, option in OPTIONS.items()} | choices
    for name in ("layers_per_stage", "document_tokens"):
        values[name] = tuple(values[name])
    return values


def _answered(choices: Choices) -> Choices:
    own_model, own_chip = (
        isinstance(choices["model"], dict),
        isinstance(choices.get("accelerator"), dict),
    )
    values = _values(choices)
    shape = _shape(values["model"]) if own_model else catalog.model(values["model"]).shape
    name = "own" if own_model else values["model"]
    setup = setup_of(shape, values, memory_of(values["software"]), _chip(values))
    cluster = _own_cluster(values) if own_chip else _cluster(values)
    parts, interval = None, Choices()
    said, factor = values["compute_efficiency"], values["time_factor"]
    wanted = _predicted(setup, values)
    if wanted is None:
        if factor is not None:
            expected = "none without the memory bandwidth of your chip"
            raise InputError("time_factor", expected=expected, got=factor)
        values["compute_efficiency"] = UNTIMED if said is None else said
    else:
        parts = predicted_parts(wanted.job, wanted.parts, factor or 1.0)
        values["compute_efficiency"] = computing_share(setup, cluster, parts)
        if factor is not None:
            check_time_factor(factor, values["compute_efficiency"])
    given = {"compute_efficiency": values["compute_efficiency"], "predicted": parts}
    found, stages = step(setup, cluster, **given), step_stages(setup, cluster, *given.values())
    if wanted is not None and said is None and factor is None:
        known = wanted.residuals
        ends = [found.step_time_s * known.low, found.step_time_s * known.high]
        interval = {"step_time_interval_s": ends, "interval_of": known.name}
    chip = values["accelerator"]
    capacity = chip["memory_bytes"] if own_chip else catalog.accelerator(chip).capacity_bytes
    if values["measured"]:
        capacity = read_rates(values["measured"]).capacity_bytes or capacity
    held = memory(setup, capacity_bytes=capacity, reserve_bytes=values["reserve_bytes"])
    head = setup_data(name, setup)
    hardware = {
        "accelerator": "own" if own_chip else chip,
        "nic": "own" if isinstance(values["nic"], dict) else values["nic"],
        "compute_efficiency": values["compute_efficiency"],
        "software": values["software"],
        **interval,
    }
    data = step_data(found, cluster, values["compute_efficiency"])
    data["gradient_buckets"] = buckets_data(found, stages)
    narrow = values["dtype"] in ("fp8", "fp4") and not own_chip
    wide = catalog.accelerator(chip).peak_flops_per_s("bf16") if narrow else None
    rate = (wide or cluster.peak_flops_per_s) * (UNTIMED if said is None else said)
    if wanted is not None and said is None:
        rate = float(wanted.attained.plain_flops_per_s)
    data |= muon_data(found, rate)
    return {"step": head | hardware | data, "memory": head | memory_data(held)}


def _predicted(setup: TrainingSetup, values: Choices) -> PredictedStep | None:
    """Return the predicted time; None for hardware on which no such step was timed."""
    chip, nic = values["accelerator"], values["nic"]
    if isinstance(chip, dict) or isinstance(nic, dict):
        return None
    measured = values["measured"] or ""
    return predicted(
        setup, chip, nic, values["dtype"], values["software"], measured=measured,
        compute_efficiency=values["compute_efficiency"], time_factor=values["time_factor"],
        latencies=(_known_cluster(values), _cluster(values)),
        gpus_per_host=values["gpus_per_node"],
    )  # fmt: skip


def _chip(values: Choices) -> Chip:
    chip = values["accelerator"]
    if not isinstance(chip, dict):
        return catalog.chip_of(catalog.accelerator(chip))
    own = {field.name: chip.get(field.name) for field in fields(Chip)}
    return Chip(**own | {"host_gpus": 0})


def _known_cluster(values: Choices) -> Cluster:
    chip = _chip(values)
    network = catalog.network_of(catalog.link(values["nic"]))
    measured = read_rates(values["measured"]).known if values["measured"] else None
    return known_cluster(chip, network, values["dtype"], values["gpus_per_node"], measured)


def _cluster(values: Choices) -> Cluster:
    names = ("scale_up_latency_s", "network_latency_s")
    own = {name: values[name] for name in names if values[name] is not None}
    return replace(_known_cluster(values), **own)


def _shape(given: Choices) -> ModelShape:
    parts = {"experts": ExpertShape, "latent": LatentAttention, "state_space": StateSpace}
    return ModelShape(**{k: parts[k](**v) if k in parts else v for k, v in given.items()})


def _own_cluster(values: Choices) -> Cluster:
    chip, nic = values["accelerator"], values["nic"]
    own = isinstance(nic, dict)
    return Cluster(
        peak_flops_per_s=chip["peak_flops_per_s"],
        scale_up_bandwidth_bytes_per_s=chip["scale_up_bandwidth_bytes_per_s"],
        network_bandwidth_bytes_per_s=nic["bandwidth_bytes_per_s"]
        if own
        else catalog.link(nic).bandwidth_bytes_per_s,
        scale_up_latency_s=values["scale_up_latency_s"],
        network_latency_s=values["network_latency_s"],
    )


def random_choices(rng: random.Random) -> Choices:
    """Return a step of any model, schedule, sharding and hardware; about one in five
    does not fit."""
    nodes, gpus = rng.choice((1, 1, 2, 4, 8, 16)), rng.choice((4, 8, 8, 8))
    world = nodes * gpus
    name = rng.choice(list(catalog.MODELS))
    pp = _divisor(rng, world, 16)
    tp = _divisor(rng, world // pp, 8)
    cp = _divisor(rng, world // pp // tp, 8) if rng.random() < 0.5 else 1
    choices: Choices = {
        "model": name, "nodes": nodes, "gpus_per_node": gpus, "pp": pp, "tp": tp, "cp": cp,
        "order": rng.choice((*["megatron"] * 4, "megatron-tp-pp-dp", "tp-cp-ep-dp-pp", "llama3")),
        "sequence": rng.choice((None, 512, 1536, 2048, 4096, 8192, 32768)),
        "microbatch_size": rng.choice((1, 1, 2, 3)),
    }  # fmt: skip
    if catalog.model(name).shape.experts:
        choices["ep"] = _divisor(rng, world // pp, 64)
        if rng.random() < 0.7:
            choices["etp"] = _divisor(rng, world // pp // choices["ep"], 4)
    scheduled = _schedule(rng, pp, world)
    if rng.random() < 0.15:
        choices["layers_per_stage"] = _uneven(rng, catalog.model(name).shape.layers, pp)
        scheduled = {"schedule": "1f1b", "microbatches": scheduled["microbatches"]}
    measured = {"measured": rng.choice(MEASURED)} if rng.random() < 0.15 else {}
    return choices | scheduled | _options(rng) | _hardware(rng) | measured


MEASURED = (
    "bf16-600000-3_attention-350000_memory-2500_near-300-4_far-40-15", "capacity-40_far-20-30",
    "fp16-90000-9_fp8-1200000-0_nearshuffle-250_farshuffle-35", "bf16-5-0_memory-1",
)  # fmt: skip


def _uneven(rng: random.Random, layers: int, stages: int) -> list[int]:
    """Return a random split of the layers over the stages, which may be empty."""
    cuts = sorted(rng.randint(0, layers) for _ in range(stages - 1))
    return [after - before for before, after in zip([0, *cuts], [*cuts, layers], strict=True)]


def _schedule(rng: random.Random, pp: int, world: int) -> Choices:
    name = rng.choice(
        ("1f1b", "1f1b", "gpipe", "naive", "looped-bfs", "interleaved-1f1b", "interleaved-1f1b",
         "zb1p", "zb2p", "zbv", "v-half", "v-min", "dualpipe", "dualpipev")
    )  # fmt: skip
    choices: Choices = {"schedule": name, "microbatches": rng.choice((pp, 4 * pp, None))}
    if rng.random() < 0.4:
        choices["microbatches"] = rng.randint(1, 40)
    if name in ("looped-bfs", "interleaved-1f1b", "zb1p") and rng.random() < 0.6:
        choices["chunks"] = rng.choice((1, 2, 3, 4))
    if name.startswith("dualpipe"):
        choices["microbatches"] = 2 * rng.randint(pp, 2 * pp)
    elif rng.random() < 0.03:
        choices["dp"] = rng.choice((world // pp, 3))
    elif rng.random() < 0.1:
        choices["global_batch"] = rng.choice((1, 2, 3)) * world * 4
    return choices


def _options(rng: random.Random) -> Choices:
    choices: Choices = {
        "zero_stage": rng.randint(0, 3),
        "recipe": rng.choice(list(RECIPES)),
        "recompute": _recompute(rng),
        "activations": rng.choice(list(FORMATS)),
        "context_exchange": rng.choice(("p2p", "all-gather", "all-to-all")),
        "software": rng.choice(known_software()),
        "compute_efficiency": rng.choice((None, None, 0.3, 0.7, 1, 0.45)),
    }
    choices["time_factor"] = rng.choice((None, None, None, 1.18, 0.9, 0.2))
    choices["mtp_layers"] = rng.choice((0, 0, 0, 0, 1, 2))
    choices["reserve_bytes"] = rng.choice((1e9, 2e9, 0))
    choices["dispatcher"] = rng.choice(("usual", "usual", *DISPATCHERS))
    choices["expert_skew"] = rng.choice((1, 1, 1.5, 4))
    choices["offloaded_optimizer"] = rng.choice((0, 0, 0, 0.5, 1))
    if rng.random() < 0.1:
        choices |= {"scale_up_latency_s": 2e-6, "network_latency_s": rng.choice((None, 7e-6))}
    switches = [name for name, option in OPTIONS.items() if option.default is True]
    for switch in switches:
        if switch != "join_hosts":
            choices[switch] = rng.random() < 0.8
    choices["dropout"] = rng.random() < 0.2
    if rng.random() < 0.2:
        choices["buckets"] = rng.randint(1, 40)
    # From what was drawn, so that all that is drawn later stays as it was.
    own = random.Random(repr(choices))
    choices["expert_overlap"] = own.choice(list(EXPERT_OVERLAPS))
    choices["cuda_graphs"] = own.choice(list(CUDA_GRAPHS))
    choices["document_tokens"] = own.choice(((), (), (300,), (2048,), (100_000,), (1024, 3072)))
    if own.random() < 0.25:
        choices["context_exchange"] = "a2a+p2p"
    choices["offloaded_activations"] = own.choice((0, 0, 0, 0.5, 1))
    choices["join_hosts"] = own.random() < 0.8
    if choices["document_tokens"] and own.random() < 0.9:
        choices["zigzag"] = True
    return choices | _adapters(rng)


def _adapters(rng: random.Random) -> Choices:
    """Return no adapters half of the time, and occasionally an invalid combination."""
    choices: Choices = {"lora_rank": rng.choice((None, None, None, None, 1, 8, 64, 5000))}
    if choices["lora_rank"] or rng.random() < 0.03:
        choices["lora_matrices"] = rng.choice(list(ADAPTED))
        choices["frozen_weights"] = rng.choice(list(FROZEN))
        choices |= {"activations": "16-bit"} if rng.random() < 0.9 else {}
    return choices


def _recompute(rng: random.Random) -> str:
    named = rng.choice((*NAMED, f"block:{rng.randint(1, 5)}", f"uniform:{rng.randint(1, 5)}"))
    modules = ",".join(rng.sample(list(MODULES), rng.randint(1, 5)))
    return modules if rng.random() < 0.5 else named


def _hardware(rng: random.Random) -> Choices:
    name = rng.choice(list(catalog.ACCELERATORS))
    chip = catalog.accelerator(name)
    offered = [dtype for dtype in ("bf16", "fp16", "fp8", "fp4", "tf32") if getattr(chip, dtype)]
    links = [link for link, found in catalog.LINKS.items() if found.kind == "scale-out"]
    dtype = rng.choice(offered) if rng.random() < 0.95 else "fp4"
    return {"accelerator": name, "dtype": dtype, "nic": rng.choice(links)}


def own_choices(rng: random.Random) -> Choices:
    """Return a step of a made-up model on made-up hardware."""
    tp, pp = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    heads = rng.choice((8, 12, 16, 40))
    shape: Choices = {
        "layers": rng.randint(4, 40), "hidden": rng.choice((768, 1000, 5120)), "heads": heads,
        "kv_heads": rng.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        "head_dim": rng.choice((64, 96, 128)), "ffn_hidden": rng.choice((3072, 4096, 11008)),
        "vocab": rng.randint(1000, 200_000), "sequence": rng.choice((1024, 4096)),
        "ffn": rng.choice(("gelu", "swiglu", "squared-relu")),
        "norm": rng.choice(("layernorm", "layernorm-no-bias", "rmsnorm")),
        "norms_per_layer": rng.choice((2, 4)), "final_norm": rng.random() < 0.8,
        "qk_norm": rng.choice(("none", "per-head", "full-width")), "bias": rng.random() < 0.5,
        "tied_embeddings": rng.random() < 0.5, "learned_positions": rng.random() < 0.5,
    }  # fmt: skip
    ep = 1
    if rng.random() < 0.5:
        count = rng.choice((8, 16))
        shape["experts"] = {
            "count": count, "top_k": rng.choice((1, 2, 8)), "ffn_hidden": 1024,
            "shared": rng.choice((0, 1)), "dense_layers": rng.choice((0, 1, 3)),
        }  # fmt: skip
        ep = rng.choice((1, 2, 4, 8))
    if rng.random() < 0.5:
        shape |= {"window": rng.choice((1, 100, 1024, 8192)), "full_every": rng.choice((0, 2, 5))}
    if rng.random() < 0.3:
        shape["latent"] = {
            "query_rank": 512, "kv_rank": 256, "nope_head_dim": 64, "rope_head_dim": 32,
            "value_head_dim": 64,
        }  # fmt: skip
    elif rng.random() < 0.3:
        if rng.random() < 0.9:
            shape |= {"window": 0, "qk_norm": "none"}
        shape["state_space"] = {
            "mixer_heads": rng.choice((8, 16, 24)), "mixer_head_dim": rng.choice((32, 64)),
            "state": rng.choice((16, 128)), "groups": rng.choice((1, 4, 8, 16)),
            "convolution": 4, "chunk": rng.choice((64, 256)),
            "attention_every": rng.choice((0, 3, 10)), "attention_first": rng.choice((0, 2)),
        }  # fmt: skip
    return {
        "model": shape, "nodes": 4, "gpus_per_node": 8, "tp": tp, "pp": pp, "ep": ep, "etp": 1,
        "microbatches": 2 * pp * rng.randint(1, 3), **_options(rng),
        "schedule": rng.choice(("1f1b", "zb1p", "interleaved-1f1b", "dualpipev", "dualpipe")),
        "accelerator": {
            "peak_flops_per_s": rng.uniform(1e14, 5e15),
            "memory_bytes": rng.uniform(1e10, 3e11),
            "scale_up_bandwidth_bytes_per_s": rng.uniform(1e11, 2e12),
        },
        "nic": {"bandwidth_bytes_per_s": rng.uniform(5e9, 3e11)},
        "scale_up_latency_s": rng.uniform(0, 1e-5), "network_latency_s": rng.uniform(0, 1e-4),
    }  # fmt: skip


def _divisor(rng: random.Random, number: int, most: int) -> int:
    return rng.choice([d for d in range(1, min(number, most) + 1) if number % d == 0])
