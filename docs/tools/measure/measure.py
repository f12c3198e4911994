#!/usr/bin/env python3
"""Measure what a GPU and its links attain, for figgen, the modeler and the planner.

    python measure.py                                  one GPU (or, slowly, a CPU)
    torchrun --nproc-per-node 8 measure.py             the links of a node as well
    torchrun --nnodes 4 --nproc-per-node 8 … measure.py

Needs PyTorch 2.2 or newer and nothing else; takes under five minutes on one GPU. Writes
measured.json: the machine's kind, no host names, no addresses. Nothing is sent anywhere.
`--tiny` takes seconds and measures nothing of use; `--only products,host` measures some parts.
`python -m figgen measured measured.json` checks the file and prints shares of the peaks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time

FORMAT, VERSION = "parallelism-computed/measured", 2

PRODUCTS = [
    # tokens × out × in: square ones, and those of layers of 4,096, 8,192 and 16,384 over TP 8.
    *((n, n, n) for n in (1024, 2048, 4096, 8192, 16384)),
    (8192, 6144, 4096),
    (8192, 28672, 4096),
    (8192, 4096, 14336),
    (8192, 10240, 8192),
    (8192, 57344, 8192),
    (8192, 8192, 28672),
    (8192, 2304, 16384),
    (8192, 13312, 16384),
    (8192, 16384, 6656),
    # Small models, keys and values of few heads, and vocabularies with and without a factor of 8.
    (8192, 2048, 2048),
    (8192, 512, 2048),
    (8192, 8192, 2048),
    (8192, 2048, 8192),
    (8192, 32000, 2048),
    (8192, 50257, 1600),
    (8192, 50304, 1600),
]
SIDES = ("forward", "input", "weight")
"""The matmul of the forward pass, and those of backward: by input and by weight."""
ATTENTION = [
    (1, 32, 128, 4096), (1, 32, 128, 8192), (1, 8, 128, 32768), (8, 32, 128, 1024),
    (4, 32, 64, 4096), (16, 32, 64, 1024), (1, 32, 64, 8192),
]  # fmt: skip
"""Batch, heads, width of a head, tokens."""
MASKS = ("causal", "explicit")
KERNELS = (
    "copy", "add", "norm", "softmax", "broadcast", "mixed", "strided", "reduce", "gate",
)  # fmt: skip
GROUPED = [(8, 16384, 14336, 4096), (64, 49152, 1408, 2048), (128, 65536, 768, 2048)]
"""Experts, tokens of all, width out, width in."""
LOSSES = [(8192, 32000), (8192, 50257), (4096, 128256)]
"""Tokens, vocabulary."""
OPTIMIZED = 4 * 10**8
"""Parameters that the optimizer updates."""
LAYER = {"hidden": 4096, "ffn": 14336, "heads": 32, "sequence": 8192, "batch": 1}
MODEL = {
    "layers": 4, "hidden": 2048, "ffn": 5632, "heads": 16, "kv_heads": 4, "vocab": 32000,
    "sequence": 2048, "batch": 4,
}  # fmt: skip
MESSAGES = [2**power for power in range(12, 31, 2)]
"""Bytes: the largest buffer of a rank, as nccl-tests counts all but the all-gather."""
COLLECTIVES = ("all_reduce", "all_gather", "all_to_all")

TINY_PRODUCTS = [(64, 64, 64), (64, 128, 32)]
TINY_ATTENTION = [(1, 2, 16, 64)]
TINY_GROUPED = [(4, 64, 32, 16)]
TINY_LOSSES = [(64, 96), (64, 97)]
TINY_LAYER = {"hidden": 64, "ffn": 128, "heads": 4, "sequence": 64, "batch": 1}
TINY_MODEL = {
    "layers": 2, "hidden": 64, "ffn": 96, "heads": 4, "kv_heads": 2, "vocab": 97,
    "sequence": 32, "batch": 2,
}  # fmt: skip
TINY_MESSAGES = [2**10, 2**14]


# What is counted; nothing here needs PyTorch.


def product_flops(m: int, n: int, k: int) -> float:
    """Return the multiplications and additions of an m × k times k × n matmul."""
    return 2.0 * m * n * k


def attention_flops(batch: int, heads: int, head_dim: int, sequence: int) -> float:
    """Return the FLOPs of causal attention forward: half of scores and values, as masked."""
    return 2.0 * batch * heads * head_dim * sequence**2


def kernel_bytes(kernel: str, elements: int, element_bytes: int) -> int:
    """Return the fewest bytes that a kernel reads and writes.

    "mixed" reads 16 bits and writes 32; "reduce" reads and writes next to nothing; "gate" reads
    two tensors and writes one; "broadcast" multiplies by a row that stays in cache.
    """
    if kernel == "mixed":
        return 3 * elements * element_bytes
    tensors = {"add": 3, "reduce": 1, "gate": 3}.get(kernel, 2)
    return tensors * elements * element_bytes


def layer_parameters(hidden: int, ffn: int) -> int:
    """Return the weights of the measured layer: full heads, SwiGLU, two norms."""
    return 4 * hidden**2 + 3 * hidden * ffn + 2 * hidden


def layer_flops(hidden: int, ffn: int, heads: int, sequence: int, batch: int) -> float:
    """Return the forward FLOPs of the layer: matmuls, and attention with its mask."""
    weights = 4 * hidden**2 + 3 * hidden * ffn
    core = attention_flops(batch, heads, hidden // heads, sequence)
    return 2.0 * weights * sequence * batch + core


def model_parameters(sizes: dict) -> int:
    """Return the parameters of the model whose training step is measured; head and table apart."""
    hidden, width = sizes["hidden"], sizes["hidden"] // sizes["heads"]
    layer = 2 * hidden**2 + 2 * hidden * width * sizes["kv_heads"] + 3 * hidden * sizes["ffn"]
    return sizes["layers"] * (layer + 2 * hidden) + 2 * sizes["vocab"] * hidden + hidden


def bus_factor(collective: str, ranks: int) -> float:
    """Return the bytes over a rank's links for each byte of its largest buffer (nccl-tests)."""
    share = (ranks - 1) / ranks
    return 2 * share if collective == "all_reduce" else share


# What is measured.


class Clock:
    """Medians of repeated calls, by the device's own clock where it has one."""

    def __init__(self, torch, device, seconds: float) -> None:
        self.torch, self.device, self.seconds = torch, device, seconds

    def wait(self) -> None:
        """Wait until the device has finished everything."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def once(self, call, times: int = 1) -> float:
        """Return the seconds of `times` calls in a row, over their number."""
        if self.device.type == "cuda":
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(times):
                call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / 1e3 / times
        started = time.perf_counter()
        for _ in range(times):
            call()
        return (time.perf_counter() - started) / times

    def wall(self, call) -> float:
        """Return the seconds of one call by the wall clock, the device's work included."""
        self.wait()
        started = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - started

    def __call__(self, call, least: int = 5) -> float:
        """Return the median seconds of a call on the device, its launch apart.

        Calls that are shorter than 2 ms run in batches between two events, behind a delay that
        lets the host get ahead, so that what is timed is the kernels and not their launches.
        """
        for _ in range(2):
            call()
        self.wait()
        lone = self.once(call)
        times = max(1, min(100, math.ceil(2e-3 / max(lone, 1e-9))))
        spent: list[float] = []
        while len(spent) < least or (sum(spent) * times < self.seconds and len(spent) < 200):
            if self.device.type == "cuda" and times > 1:
                self.torch.cuda._sleep(int(times * 4e4))  # cycles: some 20 µs a launch
            spent.append(self.once(call, times))
        return statistics.median(spent)


def formats_of(torch, device) -> dict[str, object]:
    """Return the number formats that the device multiplies, by name."""
    found: dict[str, object] = {"bf16": torch.bfloat16}
    if device.type != "cuda":
        return found
    found |= {"fp16": torch.float16, "tf32": torch.float32}
    if hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
        found["fp8"] = torch.float8_e4m3fn
    return found


def measured_products(torch, device, clock: Clock, shapes) -> list[dict]:
    """Measure matmuls by shape and format; in bf16 those of the backward pass too."""
    rows = []
    for name, dtype in formats_of(torch, device).items():
        for m, n, k in shapes:
            for side in SIDES if name == "bf16" else SIDES[:1]:
                try:
                    seconds = clock(product(torch, device, name, dtype, side, m, n, k))
                except RuntimeError as error:  # no kernel, or no memory
                    print(f"  {name} {side} {m} × {n} × {k}: {str(error).splitlines()[0]}")
                    continue
                rows.append({"format": name, "side": side, "m": m, "n": n, "k": k,
                             "seconds": seconds})  # fmt: skip
    return rows


def product(torch, device, name: str, dtype, side: str, m: int, n: int, k: int):
    """Return a call that multiplies once: x·Wᵀ, or backward g·W (by input), gᵀ·x (by weight)."""
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    weight = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    if name == "fp8":
        one = torch.ones((), device=device)
        x8, w8 = x.to(dtype), weight.to(dtype)
        return lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16)
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    x, weight = x.to(dtype), weight.to(dtype)
    if side == "forward":
        out = torch.empty(m, n, device=device, dtype=dtype)
        return lambda: torch.matmul(x, weight.t(), out=out)
    grad = torch.randn(m, n, device=device, dtype=torch.bfloat16).to(dtype)
    if side == "input":
        back = torch.empty(m, k, device=device, dtype=dtype)
        return lambda: torch.matmul(grad, weight, out=back)
    summed = torch.empty(n, k, device=device, dtype=dtype)
    return lambda: torch.matmul(grad.t(), x, out=summed)


def measured_grouped(torch, device, clock: Clock, shapes) -> list[dict]:
    """Measure the matmuls of experts, as one grouped kernel where there is one and in a loop."""
    rows = []
    for experts, tokens, n, k in shapes:
        each = tokens // experts
        x = torch.randn(tokens, k, device=device, dtype=torch.bfloat16)
        weights = torch.randn(experts, k, n, device=device, dtype=torch.bfloat16)
        ends = torch.arange(each, tokens + 1, each, device=device, dtype=torch.int32)

        def looped(x=x, weights=weights, each=each) -> None:
            for expert, part in enumerate(x.split(each)):
                torch.matmul(part, weights[expert])

        ways = {"loop": looped}
        if hasattr(torch, "_grouped_mm") and device.type == "cuda":
            ways["grouped"] = lambda x=x, w=weights, ends=ends: torch._grouped_mm(x, w, offs=ends)
        for way, call in ways.items():
            try:
                seconds = clock(call)
            except RuntimeError as error:
                print(f"  {way} {experts} experts: {str(error).splitlines()[0]}")
                continue
            rows.append({"format": "bf16", "way": way, "experts": experts, "tokens": tokens,
                         "n": n, "k": k, "seconds": seconds})  # fmt: skip
    return rows


def measured_attention(torch, device, clock: Clock, shapes) -> list[dict]:
    """Measure attention, forward and backward, in bf16: causal, and with the mask as a tensor."""
    rows = []
    for batch, heads, head_dim, sequence in shapes:
        for mask in MASKS:
            if mask == "explicit" and sequence > 8192:
                continue  # the mask alone would take gigabytes
            about = {"format": "bf16", "mask": mask, "batch": batch, "heads": heads,
                     "head_dim": head_dim, "sequence": sequence}  # fmt: skip
            passes = attention_calls(torch, device, (batch, heads, sequence, head_dim), mask)
            rows += [{**about, "pass": way, "seconds": clock(call)} for way, call in passes.items()]
    return rows


def attention_calls(torch, device, size, mask: str) -> dict:
    """Return calls that run attention forward and backward once."""
    core = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (
        torch.randn(size, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )
    how = {"is_causal": True}
    if mask == "explicit":
        allowed = torch.ones(size[2], size[2], device=device, dtype=torch.bool).tril()
        how = {"attn_mask": allowed.expand(size[0], 1, size[2], size[2])}
    out = core(q, k, v, **how)
    grad = torch.randn_like(out)

    def forward() -> None:
        with torch.no_grad():
            core(q, k, v, **how)

    def backward() -> None:
        torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)

    return {"forward": forward, "backward": backward}


def measured_kernels(torch, device, clock: Clock, elements: int) -> list[dict]:
    """Measure kernels that memory bounds, by kind of access, in bf16 on rows of 4,096."""
    functional = torch.nn.functional
    x = torch.randn(elements // 4096, 4096, device=device, dtype=torch.bfloat16)
    y, out, row = torch.randn_like(x), torch.empty_like(x), torch.randn_like(x[0])
    wide = torch.empty(x.shape, device=device, dtype=torch.float32)
    heads = x.view(-1, 32, 128).transpose(0, 1)
    calls = {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "norm": lambda: functional.layer_norm(x, (4096,)),
        "softmax": lambda: torch.softmax(x, dim=-1),
        "broadcast": lambda: torch.mul(x, row, out=out),
        "mixed": lambda: wide.copy_(x),
        "strided": lambda: heads.contiguous(),
        "reduce": lambda: x.sum(dim=-1),
        "gate": lambda: torch.mul(x, y, out=out),
    }
    return [
        {"kernel": name, "bytes": kernel_bytes(name, x.numel(), 2), "seconds": clock(calls[name])}
        for name in KERNELS
    ]


def measured_host(torch, device, clock: Clock, layers: int) -> list[dict]:
    """Measure how fast the host launches: layers so small that the device waits for it.

    `kernels` counts the operators that a profiler sees; "gap" is the device's own time for each
    of many tiny kernels that were all launched before the first one ran.
    """
    sizes = {"hidden": 64, "ffn": 128, "heads": 4}
    made = [make_layer(torch, **sizes) for _ in range(layers)]
    model = torch.nn.Sequential(*made).to(device, torch.bfloat16)
    x = torch.randn(1, 16, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn_like(x)
    cuda = device.type == "cuda"

    def forward() -> None:
        with torch.no_grad():
            model(x)

    def both() -> None:
        model(x).backward(grad)

    rows = []
    for way, call in (("forward", forward), ("both", both)):
        for _ in range(3):
            call()
        count = launches(torch, cuda, call)
        seconds = statistics.median(clock.wall(call) for _ in range(20))
        rows.append({"what": way, "kernels": count, "seconds": seconds})
    if cuda:
        one = torch.zeros(1, device=device)
        torch.cuda._sleep(10**8)  # the host fills the queue meanwhile
        rows.append(
            {"what": "gap", "kernels": 500, "seconds": 500 * clock.once(lambda: one.add_(1), 500)}
        )
    return rows


def launches(torch, cuda: bool, call) -> int:
    """Return how many kernels (on CPUs: operators) a call runs."""
    profiler = torch.profiler
    kinds = [profiler.ProfilerActivity.CUDA if cuda else profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=kinds) as seen:
        call()
        if cuda:
            torch.cuda.synchronize()
    wanted = torch.autograd.DeviceType.CUDA if cuda else torch.autograd.DeviceType.CPU
    return max(1, sum(event.device_type == wanted for event in seen.events()))


def measured_optimizer(torch, device, clock: Clock, parameters: int) -> list[dict]:
    """Measure a fused AdamW update and clipping by the norm, for state in fp32 and in bf16."""
    rows = []
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        held = [
            torch.nn.Parameter(torch.zeros(parameters // 16, device=device, dtype=dtype))
            for _ in range(16)
        ]
        for one in held:
            one.grad = torch.full_like(one, 1e-3)
        optimizer = torch.optim.AdamW(held, lr=1e-4, fused=True)
        update_s = clock(optimizer.step)
        clip_s = clock(lambda held=held: torch.nn.utils.clip_grad_norm_(held, 1.0))
        rows.append(
            {
                "format": name,
                "parameters": sum(p.numel() for p in held),
                "update_s": update_s,
                "clip_s": clip_s,
            }
        )
        del held, optimizer
    return rows


def measured_loss(torch, device, clock: Clock, shapes, compiled: bool) -> list[dict]:
    """Measure cross-entropy in fp32 over bf16 logits, forward and backward, eager and compiled."""
    functional = torch.nn.functional

    def loss_of(logits, wanted):
        return functional.cross_entropy(logits.float(), wanted)

    ways = {"eager": loss_of} | ({"compiled": torch.compile(loss_of)} if compiled else {})
    rows = []
    for tokens, vocab in shapes:
        logits = torch.randn(tokens, vocab, device=device, dtype=torch.bfloat16)
        logits.requires_grad_()
        wanted = torch.randint(vocab, (tokens,), device=device)
        for mode, way in ways.items():

            def both(way=way, logits=logits, wanted=wanted) -> None:
                torch.autograd.grad(way(logits, wanted), logits)

            rows.append({"mode": mode, "tokens": tokens, "vocab": vocab, "seconds": clock(both)})
    return rows


def make_layer(torch, hidden: int, ffn: int, heads: int):
    """Return a transformer layer as Llama has it, without positions: what matters is its work."""
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
    """Measure forward and backward of one layer in bf16."""
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


def norm_class(torch, hidden: int):
    """Return the class of a norm that computes in fp32."""
    nn = torch.nn

    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(hidden))

        def forward(self, x):
            given = x.dtype
            x = x.to(torch.float32)
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return self.weight * x.to(given)

    return Norm


def block_class(torch, sizes: dict, norm):
    """Return the class of a layer: rotated queries and keys, and a gated feed-forward block."""
    nn, functional = torch.nn, torch.nn.functional
    hidden, heads, kv_heads = sizes["hidden"], sizes["heads"], sizes["kv_heads"]
    width, ffn = hidden // heads, sizes["ffn"]
    shares_keys = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5)

    def linear(into: int, out: int):
        return nn.Linear(into, out, bias=False)

    def rotated(x, cos, sin):
        left, right = x[..., : width // 2], x[..., width // 2 :]
        return x * cos + torch.cat((-right, left), dim=-1) * sin

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = norm(), norm()
            self.q, self.o = linear(hidden, hidden), linear(hidden, hidden)
            self.k, self.v = (linear(hidden, kv_heads * width) for _ in range(2))
            self.gate, self.up = linear(hidden, ffn), linear(hidden, ffn)
            self.down = linear(ffn, hidden)

        def forward(self, x, cos, sin, mask):
            y, size = self.before(x), (*x.shape[:2], -1, width)
            q, k, v = (each(y).view(size).transpose(1, 2) for each in (self.q, self.k, self.v))
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
            how = {"attn_mask": mask, "is_causal": mask is None}
            if mask is None and shares_keys:
                how["enable_gqa"] = True
            else:
                k, v = (each.repeat_interleave(heads // kv_heads, dim=1) for each in (k, v))
            core = functional.scaled_dot_product_attention(q, k, v, **how)
            x = x + self.o(core.transpose(1, 2).reshape(x.shape))
            y = self.between(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    return Block


def make_model(torch, sizes: dict):
    """Return a small model that does what transformers' LlamaForCausalLM does, kernel by kernel.

    Head and table are apart, and the loss is that of fp32 logits.
    """
    nn, functional = torch.nn, torch.nn.functional
    hidden, vocab, width = sizes["hidden"], sizes["vocab"], sizes["hidden"] // sizes["heads"]
    norm = norm_class(torch, hidden)
    block_of = block_class(torch, sizes, norm)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(vocab, hidden)
            self.blocks = nn.ModuleList([block_of() for _ in range(sizes["layers"])])
            self.norm, self.head = norm(), nn.Linear(hidden, vocab, bias=False)

        def forward(self, tokens, mask=None):
            length = tokens.shape[1]
            steps = torch.arange(length, device=tokens.device).float()
            angles = torch.outer(
                steps, 1e4 ** -(torch.arange(0, width, 2, device=tokens.device) / width)
            ).repeat(1, 2)
            x = self.table(tokens)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            for block in self.blocks:
                x = block(x, cos, sin, mask)
            logits = self.head(self.norm(x))[:, :-1].float()
            return functional.cross_entropy(logits.reshape(-1, vocab), tokens[:, 1:].reshape(-1))

    return Model()


def measured_training(torch, device, clock: Clock, sizes: dict, compiled: bool) -> list[dict]:
    """Measure whole training steps of a few layers: time, and the allocator's peak.

    Weights are fp32 under autocast or all bf16, with fused AdamW and clipping; compiled with the
    mask as a tensor, as transformers passes it then.
    """
    rows = []
    for mode in ("eager", "compiled") if compiled else ("eager",):
        for state in ("autocast", "bf16"):
            rows.append(training_row(torch, device, clock, sizes, mode, state))
    return rows


def training_row(torch, device, clock: Clock, sizes: dict, mode: str, state: str) -> dict:
    """Measure one kind of step."""
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if cuda else 0
    dtype = torch.bfloat16 if state == "bf16" else torch.float32
    model = make_model(torch, sizes).to(device, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if mode == "compiled" else model
    batch, length = sizes["batch"], sizes["sequence"]
    tokens = torch.randint(sizes["vocab"], (batch, length), device=device)
    mask = None
    if mode == "compiled":
        mask = torch.ones(length, length, device=device, dtype=torch.bool).tril()
        mask = mask.expand(batch, 1, length, length)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=state == "autocast"):
            loss = run(tokens, mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        step()
    seconds = statistics.median(clock.wall(step) for _ in range(10))
    optimizer.zero_grad(set_to_none=True)
    memory = (
        (
            torch.cuda.memory_allocated() - before,
            torch.cuda.max_memory_allocated() - before,
            torch.cuda.max_memory_reserved(),
        )
        if cuda
        else (0, 0, 0)
    )
    return {
        "mode": mode,
        "state": state,
        "mask": "explicit" if mask is not None else "causal",
        **sizes,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": seconds,
        **dict(
            zip(("state_bytes", "peak_allocated_bytes", "peak_reserved_bytes"), memory, strict=True)
        ),
    }


def measured_collectives(torch, device, clock: Clock, sizes, nodes: int) -> list[dict]:
    """Measure collectives over all ranks by size; times are those of the slowest rank."""
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
            rows.append(
                {
                    "collective": collective,
                    "ranks": ranks,
                    "nodes": nodes,
                    "message_bytes": 2 * count,
                    "seconds": float(slowest),
                }
            )
    return rows


def collective_call(torch, device, collective: str, count: int, ranks: int):
    """Return a call of the collective on `count` elements of two bytes."""
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
    """Return what was measured on, without names of hosts or people."""
    cuda = device.type == "cuda"
    about = torch.cuda.get_device_properties(device) if cuda else None
    return {
        "device": about.name if about else "CPU",
        "kind": "cuda" if cuda else "cpu",
        "memory_bytes": about.total_memory if about else 0,
        "ranks": ranks,
        "nodes": nodes,
        "torch": str(torch.__version__),
        "runtime": str(torch.version.cuda or torch.version.hip or ""),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def parts_of(torch, device, options, ranks: int, nodes: int) -> dict:
    """Return every part by its name in the file, as a call that measures it."""
    clock, tiny = Clock(torch, device, options.seconds), options.tiny
    compiled = device.type == "cuda" and hasattr(torch, "compile")
    asked = (torch, device, clock)
    return {
        "products": lambda: measured_products(*asked, TINY_PRODUCTS if tiny else PRODUCTS),
        "grouped": lambda: measured_grouped(*asked, TINY_GROUPED if tiny else GROUPED),
        "attention": lambda: measured_attention(*asked, TINY_ATTENTION if tiny else ATTENTION),
        "kernels": lambda: measured_kernels(*asked, 2**14 if tiny else 2**28),
        "host": lambda: measured_host(*asked, 2 if tiny else 16),
        "optimizer": lambda: measured_optimizer(*asked, 2**12 if tiny else OPTIMIZED),
        "loss": lambda: measured_loss(*asked, TINY_LOSSES if tiny else LOSSES, compiled),
        "layers": lambda: measured_layer(*asked, TINY_LAYER if tiny else LAYER),
        "training": lambda: measured_training(*asked, TINY_MODEL if tiny else MODEL, compiled),
        "collectives": lambda: (
            measured_collectives(*asked, TINY_MESSAGES if tiny else MESSAGES, nodes)
            if ranks > 1
            else []
        ),
    }


def measured(torch, device, options, ranks: int, nodes: int) -> dict:
    """Measure everything that was asked for, as it is written."""
    found = {
        "format": FORMAT,
        "version": VERSION,
        "machine": machine_of(torch, device, ranks, nodes),
    }
    for name, part in parts_of(torch, device, options, ranks, nodes).items():
        if options.only and name not in options.only.split(","):
            continue
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"measuring {name}", flush=True)
        found[name] = part()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="measured.json", help="the file to write")
    parser.add_argument("--seconds", type=float, default=0.2, help="to spend on each measurement")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--cpu", action="store_true", help="measure the CPU even if there is a GPU")
    parser.add_argument("--only", default="", help="parts to measure, with commas; all if empty")
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
