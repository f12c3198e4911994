#!/usr/bin/env python3
"""Measure what a GPU and its links attain, for figgen, the modeler and the planner.

    python measure.py                                  one GPU (or, slowly, a CPU)
    torchrun --nproc-per-node 8 measure.py             the links of a node as well
    torchrun --nnodes 4 --nproc-per-node 8 … measure.py

Needs PyTorch 2.2 or newer and nothing else. Writes measured.json: the machine's kind, no host
names, no addresses. Nothing is sent anywhere. `--tiny` takes seconds and measures nothing of use.
`python -m figgen measured measured.json` checks the file and prints shares of the peaks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time

FORMAT, VERSION = "parallelism-computed/measured", 1

PRODUCTS = [
    # tokens × out × in: square ones, and those of layers of 4,096, 8,192 and 16,384 over TP 8.
    *((n, n, n) for n in (1024, 2048, 4096, 8192, 16384)),
    (8192, 6144, 4096), (8192, 28672, 4096), (8192, 4096, 14336),
    (8192, 10240, 8192), (8192, 57344, 8192), (8192, 8192, 28672),
    (8192, 2304, 16384), (8192, 13312, 16384), (8192, 16384, 6656),
]  # fmt: skip
ATTENTION = [(1, 32, 128, 4096), (1, 32, 128, 8192), (1, 8, 128, 32768), (4, 32, 64, 4096)]
"""Batch, heads, width of a head, tokens."""
KERNELS = ("copy", "add", "norm", "softmax")
LAYER = {"hidden": 4096, "ffn": 14336, "heads": 32, "sequence": 8192, "batch": 1}
STEP_LAYERS = 2
MESSAGES = [2**power for power in range(12, 31, 2)]
"""Bytes: the largest buffer of a rank, as nccl-tests counts all but the all-gather."""
COLLECTIVES = ("all_reduce", "all_gather", "all_to_all")

TINY_PRODUCTS = [(64, 64, 64), (64, 128, 32)]
TINY_ATTENTION = [(1, 2, 16, 64)]
TINY_LAYER = {"hidden": 64, "ffn": 128, "heads": 4, "sequence": 64, "batch": 1}
TINY_MESSAGES = [2**10, 2**14]


# What is counted; nothing here needs PyTorch.


def product_flops(m: int, n: int, k: int) -> float:
    """Multiplications and additions of an m × k times k × n product."""
    return 2.0 * m * n * k


def attention_flops(batch: int, heads: int, head_dim: int, sequence: int) -> float:
    """Of the causal core forward: the half of scores and values that the mask leaves."""
    return 2.0 * batch * heads * head_dim * sequence**2


def kernel_bytes(kernel: str, elements: int, element_bytes: int) -> int:
    """The fewest bytes that a kernel reads and writes."""
    tensors = {"copy": 2, "add": 3, "norm": 2, "softmax": 2}[kernel]
    return tensors * elements * element_bytes


def layer_parameters(hidden: int, ffn: int) -> int:
    """Weights of the layer that is measured: full heads, SwiGLU, two norms."""
    return 4 * hidden**2 + 3 * hidden * ffn + 2 * hidden


def layer_flops(hidden: int, ffn: int, heads: int, sequence: int, batch: int) -> float:
    """Forward of the layer: products, and the attention core with its mask."""
    weights = 4 * hidden**2 + 3 * hidden * ffn
    core = attention_flops(batch, heads, hidden // heads, sequence)
    return 2.0 * weights * sequence * batch + core


def bus_factor(collective: str, ranks: int) -> float:
    """Bytes over a rank's links for each byte of its largest buffer, as nccl-tests counts."""
    share = (ranks - 1) / ranks
    return 2 * share if collective == "all_reduce" else share


# What is measured.


class Clock:
    """Medians of repeated calls, by the device's own clock where it has one."""

    def __init__(self, torch, device, seconds: float) -> None:
        self.torch, self.device, self.seconds = torch, device, seconds

    def wait(self) -> None:
        """Until the device has done everything."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def once(self, call) -> float:
        """Seconds of one call."""
        if self.device.type == "cuda":
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / 1e3
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    def __call__(self, call, least: int = 5) -> float:
        """Median seconds of a call after two to warm up."""
        for _ in range(2):
            call()
        self.wait()
        spent: list[float] = []
        while len(spent) < least or (sum(spent) < self.seconds and len(spent) < 200):
            spent.append(self.once(call))
        return statistics.median(spent)


def formats_of(torch, device) -> dict[str, object]:
    """Number formats that the device multiplies, by name."""
    found: dict[str, object] = {"bf16": torch.bfloat16}
    if device.type != "cuda":
        return found
    found["fp16"] = torch.float16
    if hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
        found["fp8"] = torch.float8_e4m3fn
    return found


def measured_products(torch, device, clock: Clock, shapes) -> list[dict]:
    """Products by shape and format."""
    rows = []
    for name, dtype in formats_of(torch, device).items():
        for m, n, k in shapes:
            try:
                call = product(torch, device, name, dtype, m, n, k)
                seconds = clock(call)
            except RuntimeError as error:  # no kernel, or no memory
                print(f"  {name} {m} × {n} × {k}: {str(error).splitlines()[0]}")
                continue
            rows.append({"format": name, "m": m, "n": n, "k": k, "seconds": seconds})
    return rows


def product(torch, device, name: str, dtype, m: int, n: int, k: int):
    """A call that multiplies once."""
    a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    b = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    if name == "fp8":
        one = torch.ones((), device=device)
        a8, b8 = a.to(dtype), b.to(dtype)
        return lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16)
    a, b = a.to(dtype), b.to(dtype)
    out = torch.empty(m, n, device=device, dtype=dtype)
    return lambda: torch.matmul(a, b.t(), out=out)


def measured_attention(torch, device, clock: Clock, shapes) -> list[dict]:
    """The causal core, forward and backward, in bf16."""
    rows = []
    for batch, heads, head_dim, sequence in shapes:
        about = {
            "format": "bf16", "batch": batch, "heads": heads, "head_dim": head_dim,
            "sequence": sequence,
        }  # fmt: skip
        passes = attention_calls(torch, device, (batch, heads, sequence, head_dim))
        rows += [{**about, "pass": way, "seconds": clock(call)} for way, call in passes.items()]
    return rows


def attention_calls(torch, device, size) -> dict:
    """Calls that run the core forward and backward once."""
    core = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (
        torch.randn(size, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )
    out = core(q, k, v, is_causal=True)
    grad = torch.randn_like(out)

    def forward() -> None:
        with torch.no_grad():
            core(q, k, v, is_causal=True)

    def backward() -> None:
        torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)

    return {"forward": forward, "backward": backward}


def measured_kernels(torch, device, clock: Clock, elements: int) -> list[dict]:
    """Kernels that memory bounds, in bf16 on rows of 4,096."""
    x = torch.randn(elements // 4096, 4096, device=device, dtype=torch.bfloat16)
    y, out = torch.randn_like(x), torch.empty_like(x)
    calls = {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "norm": lambda: torch.nn.functional.layer_norm(x, (4096,)),
        "softmax": lambda: torch.softmax(x, dim=-1),
    }
    return [
        {"kernel": name, "bytes": kernel_bytes(name, x.numel(), 2), "seconds": clock(calls[name])}
        for name in KERNELS
    ]


def make_layer(torch, hidden: int, ffn: int, heads: int):
    """A transformer layer as Llama has it, without positions: what matters here is its work."""
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = (
                nn.LayerNorm(hidden, bias=False),
                nn.LayerNorm(hidden, bias=False),
            )
            self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
            self.out = nn.Linear(hidden, hidden, bias=False)
            self.up = nn.Linear(hidden, 2 * ffn, bias=False)
            self.down = nn.Linear(ffn, hidden, bias=False)

        def forward(self, x):
            size = (*x.shape[:2], 3, heads, hidden // heads)
            q, k, v = self.qkv(self.before(x)).view(size).permute(2, 0, 3, 1, 4)
            core = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(core.transpose(1, 2).reshape(x.shape))
            gate, up = self.up(self.between(x)).chunk(2, dim=-1)
            return x + self.down(functional.silu(gate) * up)

    return Layer()


def measured_layer(torch, device, clock: Clock, sizes: dict) -> list[dict]:
    """Forward and backward of one layer in bf16."""
    hidden, ffn, heads = sizes["hidden"], sizes["ffn"], sizes["heads"]
    layer = make_layer(torch, hidden, ffn, heads).to(device, torch.bfloat16)
    size = (sizes["batch"], sizes["sequence"], hidden)
    x = torch.randn(size, device=device, dtype=torch.bfloat16, requires_grad=True)
    with torch.no_grad():
        forward_s = clock(lambda: layer(x))
    grad = torch.randn_like(x)

    def both() -> None:
        layer(x).backward(grad)

    return [{"format": "bf16", **sizes, "forward_s": forward_s, "both_s": clock(both)}]


def measured_step(torch, device, sizes: dict, layers: int) -> list[dict]:
    """The allocator's peak over steps of a few layers with Adam, weights and state in fp32."""
    if device.type != "cuda":
        return []
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    made = [make_layer(torch, sizes["hidden"], sizes["ffn"], sizes["heads"]) for _ in range(layers)]
    model = torch.nn.Sequential(*made).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    size = (sizes["batch"], sizes["sequence"], sizes["hidden"])
    x = torch.randn(size, device=device)
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [{
        **sizes, "layers": layers, "parameters": sum(p.numel() for p in model.parameters()),
        "state_bytes": torch.cuda.memory_allocated() - before,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated() - before,
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }]  # fmt: skip


def measured_collectives(torch, device, clock: Clock, sizes, nodes: int) -> list[dict]:
    """Collectives over all ranks by size; times are those of the slowest rank."""
    dist = torch.distributed
    ranks, rows = dist.get_world_size(), []
    for collective in COLLECTIVES:
        for size in sizes:
            count = max(ranks, size // 2 // ranks * ranks)
            call = collective_call(torch, device, collective, count, ranks)
            try:
                # As many calls on every rank, or they would wait for each other for ever.
                for _ in range(3):
                    call()
                clock.wait()
                dist.barrier()
                spent = [clock.once(call) for _ in range(10)]
            except RuntimeError as error:  # what a backend for CPUs lacks
                print(f"  {collective}: {str(error).splitlines()[0]}")
                break
            slowest = torch.tensor(statistics.median(spent), device=device)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            rows.append({
                "collective": collective, "ranks": ranks, "nodes": nodes,
                "message_bytes": 2 * count, "seconds": float(slowest),
            })  # fmt: skip
    return rows


def collective_call(torch, device, collective: str, count: int, ranks: int):
    """A call of the collective on `count` elements of two bytes."""
    dist = torch.distributed
    whole = torch.zeros(count, device=device, dtype=torch.bfloat16)
    part = torch.zeros(count // ranks, device=device, dtype=torch.bfloat16)
    if collective == "all_reduce":
        return lambda: dist.all_reduce(whole)
    if collective == "all_gather":
        return lambda: dist.all_gather_into_tensor(whole, part)
    other = torch.zeros_like(whole)
    return lambda: dist.all_to_all_single(other, whole)


def machine_of(torch, device, ranks: int, nodes: int) -> dict:
    """What was measured on, without names of hosts or people."""
    cuda = device.type == "cuda"
    about = torch.cuda.get_device_properties(device) if cuda else None
    return {
        "device": about.name if about else "CPU",
        "kind": "cuda" if cuda else "cpu",
        "memory_bytes": about.total_memory if about else 0,
        "ranks": ranks, "nodes": nodes,
        "torch": str(torch.__version__),
        "runtime": str(torch.version.cuda or torch.version.hip or ""),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }  # fmt: skip


def measured(torch, device, options, ranks: int, nodes: int) -> dict:
    """Everything, as it is written."""
    clock = Clock(torch, device, options.seconds)
    tiny = options.tiny
    sizes = TINY_LAYER if tiny else LAYER
    found = {
        "format": FORMAT,
        "version": VERSION,
        "machine": machine_of(torch, device, ranks, nodes),
    }
    parts = {
        "products": lambda: measured_products(
            torch, device, clock, TINY_PRODUCTS if tiny else PRODUCTS
        ),
        "attention": lambda: measured_attention(
            torch, device, clock, TINY_ATTENTION if tiny else ATTENTION
        ),
        "kernels": lambda: measured_kernels(torch, device, clock, 2**14 if tiny else 2**28),
        "layers": lambda: measured_layer(torch, device, clock, sizes),
        "steps": lambda: measured_step(torch, device, sizes, STEP_LAYERS),
        "collectives": lambda: (
            measured_collectives(torch, device, clock, TINY_MESSAGES if tiny else MESSAGES, nodes)
            if ranks > 1
            else []
        ),
    }
    for name, part in parts.items():
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"measuring {name}", flush=True)
        found[name] = part()
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="measured.json", help="the file to write")
    parser.add_argument("--seconds", type=float, default=0.5, help="to spend on each measurement")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--cpu", action="store_true", help="measure the CPU even if there is a GPU")
    options = parser.parse_args()
    if not options.seconds > 0 or not math.isfinite(options.seconds):
        parser.error(f"--seconds must be above 0, got {options.seconds}")
    import torch

    cuda = torch.cuda.is_available() and not options.cpu
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    nodes = max(1, ranks // int(os.environ.get("LOCAL_WORLD_SIZE", str(ranks))))
    if ranks > 1:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    found = measured(torch, device, options, ranks, nodes)
    if int(os.environ.get("RANK", "0")) == 0:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
        print(f"wrote {options.out}")
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
