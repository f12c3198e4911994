"""How many nodes a job has, how many GPUs per node, and how ranks are laid out."""

from __future__ import annotations

from figgen.scenarios.taking.given import (
    FOLLOWS,
    LAUNCHED,
    Given,
    assume,
    switch_of,
    take,
    text_of,
    value_of,
    whole_of,
)
from figgen.scenarios.texts.entry import Entry, is_whole, normal

USUAL_WIDTH = 8
"""Default GPUs per node."""

CHIPS = (
    ("gb300", "gb300-nvl72"), ("gb200", "gb200-nvl72"), ("b300", "b300-sxm-hgx"),
    ("b200", "b200-sxm-hgx"), ("h200", "h200-sxm-141gb"), ("h800", "h800-sxm-80gb"),
    ("h100", "h100-sxm-80gb"), ("h20", "h20-sxm-96gb"), ("a100_40", "a100-sxm-40gb"),
    ("a100", "a100-sxm-80gb"), ("v100", "v100-sxm2-32gb"), ("mi355x", "mi355x"),
    ("mi350x", "mi350x"), ("mi325x", "mi325x"), ("mi300", "mi300x"),
    ("v5p", "tpu-v5p"), ("v5e", "tpu-v5e"),
)  # fmt: skip
"""Names of accelerators in schedulers, and their names in the catalog."""

AXES = ("tp", "pp", "cp", "ep", "etp")


def take_cluster(given: Given) -> None:
    """Set nodes, GPUs per node and the accelerator."""
    for key in ("tasks_per_node", "gpus_per_task"):
        text_of(given, key, LAUNCHED)
    listed_nodes, listed_width = _included(given)
    nodes = _nodes(given) or listed_nodes
    width = listed_width or _width(given, nodes)
    if not nodes:
        processes = whole_of(given, "processes", LAUNCHED) or whole_of(given, "tasks", LAUNCHED)
        if processes and width and processes % width == 0:
            nodes = processes // width
    if nodes:
        take(given, "nodes", nodes)
    if width:
        take(given, "gpus_per_node", width)
    _take_chip(given)


def take_layout(given: Given, dialect: str) -> None:
    """Set the sizes of the axes, and what follows from them together."""
    for axis in AXES:
        size = whole_of(given, axis)
        if size:
            take(given, axis, size)
        elif text_of(given, axis) == "0" and dialect != "gpt-neox":
            given.notes.append(f"{axis}: expected a whole number from 1 on, got 0")
    heads = whole_of(given, "ulysses")
    if heads > 1 and value_of(given, "cp", 1) == 1:
        take(given, "cp", heads)
        take(given, "context_exchange", "all-to-all")
    if dialect == "gpt-neox" and given.keys.get("pp") and "pp" not in given.taken:
        take(given, "pp", 1)  # 0 pipeline stages mean no pipeline
    if "expert_tensor" in given.keys and switch_of(given, "expert_tensor"):
        take(given, "etp", value_of(given, "tp", 1))
    _take_order(given, dialect)
    _take_replicas(given)
    _assume_cluster(given)
    _settle_replicas(given)


def axes_product(given: Given) -> int:
    """Return the GPUs of one replica."""
    return value_of(given, "tp", 1) * value_of(given, "pp", 1) * value_of(given, "cp", 1)


def _nodes(given: Given) -> int:
    text = text_of(given, "nodes", LAUNCHED)
    if ":" in text:
        low, _, high = text.partition(":")
        if is_whole(high.strip()) and low == high:
            return int(high)
        if is_whole(high.strip()):
            given.notes.append(f"the launcher allows {low} to {high} nodes; using {high}")
            return int(high)
    least, _, most = text.partition("-")
    if is_whole(least) and is_whole(most):
        return int(most)
    if not text and "replicas" in given.keys:
        text_of(given, "replicas")
        return sum([int(one.value) for one in given.keys["replicas"] if is_whole(one.value)])
    if text == "0":
        given.notes.append("nodes: expected a whole number from 1 on, got 0")
    return whole_of(given, "nodes", LAUNCHED)


def _included(given: Given) -> tuple[int, int]:
    """Return nodes and GPUs per node of DeepSpeed's `--include=a:0,1@b:0,1`, or zeros."""
    text = text_of(given, "included", LAUNCHED)
    if not text or "$" in text:
        return 0, 0
    nodes = text.split("@")
    widths = [len(node.partition(":")[2].split(",")) for node in nodes if ":" in node]
    if len(widths) < len(nodes):
        return len(nodes), 0
    if min(widths) < max(widths):
        given.notes.append(
            f"--include lists {min(widths)} to {max(widths)} GPUs per node; using {min(widths)} "
            "of each"
        )
    return len(nodes), min(widths)


def _width(given: Given, nodes: int) -> int:
    """Return GPUs per node from the launcher's processes, or else from the scheduler."""
    started = whole_of(given, "processes_per_node", LAUNCHED)
    listed = text_of(given, "processes_per_node", LAUNCHED)
    if not started and listed.startswith(("[", "0,")):
        started = len(listed.strip("[]").split(","))
    scheduled = _plain_or_typed(given, "gpus_per_node")
    resources = scheduled or _typed(given, "generic_resources")
    if started and resources and started != resources and resources > 1:
        given.notes.append(
            f"the launcher starts {started} processes on a node with {resources} GPUs; "
            f"using {started} GPUs per node"
        )
    if started or resources:
        return started or resources
    per_task = whole_of(given, "gpus_per_task", LAUNCHED)
    if per_task:
        tasks = whole_of(given, "tasks", LAUNCHED) // max(nodes, 1)
        return per_task * max(1, whole_of(given, "tasks_per_node", LAUNCHED) or tasks)
    gpus = _plain_or_typed(given, "gpus")
    together = gpus or whole_of(given, "processes", LAUNCHED) or whole_of(given, "tasks", LAUNCHED)
    if together and nodes and together % nodes == 0:
        return together // nodes
    tasks = whole_of(given, "tasks_per_node", LAUNCHED)
    return tasks if tasks > 1 else _visible(given)


def _visible(given: Given) -> int:
    """Return the number of GPUs in `CUDA_VISIBLE_DEVICES=0,1`, or 0."""
    for one in reversed(given.entries):
        devices = one.value.split(",") if one.name == "CUDA_VISIBLE_DEVICES" else []
        if devices and all(is_whole(device) for device in devices):
            return len(devices)
    return 0


def _plain_or_typed(given: Given, key: str) -> int:
    """Return the number in `8` or `h100:8`."""
    if ":" in text_of(given, key, LAUNCHED):
        return _typed(given, key)
    return whole_of(given, key, LAUNCHED)


def _typed(given: Given, key: str) -> int:
    """Return the number in `gpu:8`, `gpu:a100:8` or `h100:8`."""
    for one in reversed(given.keys.get(key, [])):
        for part in one.value.split(","):
            said = part.partition("(")[0]
            number = said.rpartition(":")[2]
            if is_whole(number) and (key != "generic_resources" or "gpu" in said):
                return int(number)
    return 0


def _take_chip(given: Given) -> None:
    said = ""
    for key in ("generic_resources", "chip", "gpus_per_node", "gpus"):
        for one in given.keys.get(key, []):
            said += " " + one.words.lower()
    if not given.keys.get("generic_resources") and "chip" not in given.keys and ":" not in said:
        return
    text_of(given, "chip")
    for name, chip in CHIPS:
        if name in said:
            take(given, "accelerator", chip)
            return
    for word in said.replace(",", " ").split():
        kind, typed, _ = word.removeprefix("gres/").removeprefix("gpu:").partition(":")
        if typed and (word[:3] == "gpu" or "generic_resources" not in given.keys):
            given.notes.append(f"the accelerator {kind!r} is not in the catalog")
            return


ORDERS = {
    "torchtitan": "torchtitan", "nanotron": "nanotron", "gpt-neox": "deepspeed",
    "megatron-lm": "megatron", "megatron-bridge": "megatron", "nemo": "megatron",
    "megatron-deepspeed": "megatron", "deepspeed-topology": "deepspeed",
    "megatron-core": "megatron", "maxtext": "torchtitan",
}  # fmt: skip
"""The rank order of each framework."""


def _take_order(given: Given, dialect: str) -> None:
    said = text_of(given, "order")
    if said:
        take(given, "order", _order_text(said))
        return
    if dialect == "mesh":
        _take_mesh_order(given)
        return
    if switch_of(given, "pipeline_last"):
        take(given, "order", "megatron-tp-pp-dp")
        return
    order = ORDERS.get(dialect, "")
    if order == "nanotron" and value_of(given, "ep", 1) > 1:
        order = "nanotron-moe"
    if order:
        take(given, "order", order)


def _order_text(said: str) -> str:
    return said.replace("usp-", "").replace(" ", "-")


MESH_AXES = {
    "data": "dp", "data_parallel": "dp", "replicate": "dp", "dp_replicate": "dp", "dp_shard": "dp",
    "shard": "dp", "fsdp": "dp", "ddp": "dp", "pipe": "pp", "model": "tp", "tensor": "tp",
}  # fmt: skip


def _take_mesh_order(given: Given) -> None:
    """Set the rank order of a device mesh, which names its axes slowest first.

    A second mesh, with experts, places their axis among the others.
    """
    dense = _mesh_axes(given, "mesh")
    expert = _mesh_axes(given, "expert_mesh")
    order: list[str] = []
    for axis in dense:
        if axis not in order:
            order.append(axis)
    if "ep" in expert and "ep" not in order:
        order.insert(_place_of_experts(order, expert), "ep")
    if len(order) < 2:
        return  # a single axis has no order
    text = "-".join(order)
    named = {
        "tp-cp-ep-dp-pp": "megatron", "tp-cp-ep-pp-dp": "megatron-tp-pp-dp",
        "tp-cp-dp-pp": "megatron", "tp-cp-pp-dp": "megatron-tp-pp-dp",
        "tp-dp-pp": "megatron", "tp-pp-dp": "megatron-tp-pp-dp",
    }  # fmt: skip
    take(given, "order", named.get(text, text))


def _mesh_axes(given: Given, mesh: str) -> list[str]:
    """Return the axes of a mesh in the program, fastest first."""
    axes: list[str] = []
    for one in given.entries:
        parts = one.name.split(".")
        if len(parts) == 2 and parts[0] == mesh:
            axis = normal(parts[1])
            axes.insert(0, MESH_AXES.get(axis, axis))
    return axes


def _place_of_experts(order: list[str], expert: list[str]) -> int:
    """Return the position of `ep` among the dense axes, after those before it on its own mesh."""
    before = expert[: expert.index("ep")]
    at = 0
    for axis in before:
        name = "tp" if axis == "etp" else ("dp" if axis == "edp" else axis)
        if name in order:
            at = max(at, order.index(name) + 1)
    if "cp" in order and at <= order.index("cp") and "dp" in order:
        at = max(at, min(order.index("cp") + 1, order.index("dp")))
    return at


def _take_replicas(given: Given) -> None:
    """Set the number of replicas if the file gives it."""
    shard = whole_of(given, "dp_shard")
    replicate = whole_of(given, "dp_replicate")
    if replicate > 1:
        given.notes.append(
            f"each of {replicate} groups shards its own copy of the weights; the predicted step "
            "shards one copy over all replicas"
        )
    dp = whole_of(given, "dp")
    expert = whole_of(given, "edp")
    if dp:
        take(given, "dp", dp)
    elif shard:
        take(given, "dp", shard * max(replicate, 1))
    elif expert:
        inner = expert * value_of(given, "ep", 1) * value_of(given, "etp", 1)
        whole = inner * value_of(given, "pp", 1)
        if whole % axes_product(given) == 0:
            take(given, "dp", whole // axes_product(given))


def _assume_cluster(given: Given) -> None:
    """Assume nodes or GPUs per node if the file omits them."""
    replicas = value_of(given, "dp", 0)
    world = axes_product(given) * replicas
    nodes = value_of(given, "nodes", 0)
    width = value_of(given, "gpus_per_node", 0)
    if world and not nodes and not width:
        width = _usual_width(given, world)
        if world % width == 0:
            assume(given, "gpus_per_node", width, FOLLOWS)
            assume(given, "nodes", world // width, FOLLOWS)
        return
    if world and nodes and not width and world % nodes == 0:
        assume(given, "gpus_per_node", world // nodes, FOLLOWS)
        return
    if world and width and not nodes and world % width == 0:
        assume(given, "nodes", world // width, FOLLOWS)
        return
    if not nodes and "nodes" not in given.keys:
        processes = whole_of(given, "processes", LAUNCHED)
        if processes and not width:
            width = _usual_width(given, processes)
            assume(given, "gpus_per_node", width, FOLLOWS)
            assume(given, "nodes", max(1, processes // width), FOLLOWS)
        elif _launcher(given) or width:
            assume(given, "nodes", 1, "the launcher's default")
    if not width and not _width_is_asked(given) and _launcher(given).startswith("torch"):
        assume(given, "gpus_per_node", 1, "torchrun's default")


def _usual_width(given: Given, world: int) -> int:
    """Return the default width of a node: a server, or the domain of a rack or a pod.

    If the GPUs do not fill the domain evenly, it is the widest power of two that divides them.
    """
    width = given.domains.get(str(given.taken.get("accelerator", "")), USUAL_WIDTH)
    if world <= width:
        return world
    if width > USUAL_WIDTH and world % width:
        width = 64
        while world % width and width > USUAL_WIDTH:
            width = width // 2
    return width


def _launcher(given: Given) -> str:
    """Return the launcher of the job, or ""."""
    named = [
        one.value for one in given.entries if one.name == "launcher" and one.origin == "launcher"
    ]
    return named[-1] if named else ""


def _width_is_asked(given: Given) -> bool:
    return "processes_per_node" in given.keys or "gpus_per_node" in given.keys


def _settle_replicas(given: Given) -> None:
    """Set the remaining axis to data parallelism, or note that the sizes do not fit."""
    nodes = value_of(given, "nodes", 0)
    width = value_of(given, "gpus_per_node", 0)
    inner = axes_product(given)
    if not nodes or not width:
        return
    world = nodes * width
    if world % inner:
        given.notes.append(
            f"{world:,} GPUs cannot be divided into replicas of {inner:,} = TP · PP · CP"
        )
        return
    said_left = _says_minus_one(given.keys.get("dp_shard", [])) or _says_minus_one(
        given.keys.get("dp", [])
    )
    if "dp" in given.taken:
        if given.taken["dp"] != world // inner:
            given.notes.append(
                f"DP {given.taken['dp']} does not fit: {world:,} GPUs in replicas of {inner:,} "
                f"give DP {world // inner:,}"
            )
    elif said_left:
        take(given, "dp", world // inner)
    else:
        assume(given, "dp", world // inner, FOLLOWS)


def _says_minus_one(entries: list[Entry]) -> bool:
    return any(one.value == "-1" for one in entries)
