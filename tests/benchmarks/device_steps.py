#!/usr/bin/env python3
"""Time training steps of plain transformers models with random weights on one GPU.

    python device_steps.py steps.json                  all cases
    python device_steps.py steps.json --only llama1b-amp-eager,gpt2xl-amp-eager
    python device_steps.py steps.json --tiny           small sizes, also on a CPU

Needs PyTorch and transformers, and peft for cases with adapters. A step is zero_grad, forward, loss
and backward of each microbatch, gradient clipping by norm, and a fused AdamW. Records have the
fields of `figgen/catalog/steps-h100.json` and are written after every case, so that an interruption
loses only one case.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from dataclasses import dataclass, replace

LLAMA = {"class": "LlamaForCausalLM", "gated_mlp": True}
SHAPES = {
    "llama1b": LLAMA | {
        "num_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_kv_heads": 8,
        "head_dim": 64, "ffn_hidden_size": 8192, "vocab_size": 128256, "tied_embeddings": True,
    },
    "llama3b": LLAMA | {
        "num_layers": 28, "hidden_size": 3072, "num_attention_heads": 24, "num_kv_heads": 8,
        "head_dim": 128, "ffn_hidden_size": 8192, "vocab_size": 128256, "tied_embeddings": True,
    },
    "llama8b": LLAMA | {
        "num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_kv_heads": 8,
        "head_dim": 128, "ffn_hidden_size": 14336, "vocab_size": 128256, "tied_embeddings": False,
    },
    "tinyllama": LLAMA | {
        "num_layers": 22, "hidden_size": 2048, "num_attention_heads": 32, "num_kv_heads": 4,
        "head_dim": 64, "ffn_hidden_size": 5632, "vocab_size": 32000, "tied_embeddings": False,
    },
    "gpt2l": {
        "class": "GPT2LMHeadModel", "gated_mlp": False,
        "num_layers": 36, "hidden_size": 1280, "num_attention_heads": 20, "num_kv_heads": 20,
        "head_dim": 64, "ffn_hidden_size": 5120, "vocab_size": 50257, "tied_embeddings": True,
    },
    "gpt2xl": {
        "class": "GPT2LMHeadModel", "gated_mlp": False,
        "num_layers": 48, "hidden_size": 1600, "num_attention_heads": 25, "num_kv_heads": 25,
        "head_dim": 64, "ffn_hidden_size": 6400, "vocab_size": 50257, "tied_embeddings": True,
    },
    "qwen17b": {
        "class": "Qwen3ForCausalLM", "gated_mlp": True, "qk_norm": "per-head",
        "num_layers": 28, "hidden_size": 2048, "num_attention_heads": 16, "num_kv_heads": 8,
        "head_dim": 128, "ffn_hidden_size": 6144, "vocab_size": 151936, "tied_embeddings": True,
    },
    "mixtral-mini": {
        "class": "MixtralForCausalLM", "gated_mlp": True, "num_experts": 8, "top_k": 2,
        "num_layers": 12, "hidden_size": 1024, "num_attention_heads": 16, "num_kv_heads": 8,
        "head_dim": 64, "ffn_hidden_size": 3584, "vocab_size": 32000, "tied_embeddings": False,
    },
}  # fmt: skip
TINY = {
    "num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_kv_heads": 2,
    "head_dim": 16, "ffn_hidden_size": 96, "vocab_size": 97,
}  # fmt: skip
STATES = {
    "amp": "fp32 weights under autocast, fp32 Adam",
    "bf16": "bf16 weights, gradients and Adam",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case to time: a model, its batch, its format, and what is compiled or recomputed."""

    model: str
    batch: int
    sequence: int
    state: str = "amp"
    compiled: bool = False
    full: bool = False
    microbatches: int = 1
    lora_rank: int = 0


CASES = {
    "llama1b-amp-eager": Case(model="llama1b", batch=2, sequence=4096),
    "gpt2xl-amp-eager": Case(model="gpt2xl", batch=8, sequence=1024),
    "mixtral-mini-amp-eager": Case(model="mixtral-mini", batch=4, sequence=2048),
    "llama8b-bf16-full": Case(model="llama8b", batch=1, sequence=4096, state="bf16", full=True),
    "llama1b-amp-8k-full": Case(model="llama1b", batch=4, sequence=8192, full=True),
    "llama3b-amp-eager": Case(model="llama3b", batch=2, sequence=4096),
    "llama8b-bf16-eager": Case(model="llama8b", batch=2, sequence=4096, state="bf16"),
    "tinyllama-bf16-eager-4": Case(
        model="tinyllama", batch=4, sequence=2048, state="bf16", microbatches=4
    ),
    "qwen17b-amp-eager": Case(model="qwen17b", batch=2, sequence=4096),
    "llama8b-bf16-lora": Case(model="llama8b", batch=2, sequence=4096, state="bf16", lora_rank=16),
    "llama1b-amp-compile": Case(model="llama1b", batch=2, sequence=4096, compiled=True),
    "qwen17b-bf16-compile": Case(
        model="qwen17b", batch=4, sequence=4096, state="bf16", compiled=True
    ),
    "gpt2l-bf16-compile": Case(model="gpt2l", batch=16, sequence=1024, state="bf16", compiled=True),
}


def config_of(shape: dict):
    """Return the model's configuration for transformers."""
    import transformers

    kind = shape["class"].replace("LMHeadModel", "").replace("ForCausalLM", "")
    if kind == "GPT2":
        return transformers.GPT2Config(
            vocab_size=shape["vocab_size"],
            n_positions=1024,
            n_embd=shape["hidden_size"],
            n_layer=shape["num_layers"],
            n_head=shape["num_attention_heads"],
            n_inner=shape["ffn_hidden_size"],
            use_cache=False,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    experts = {}
    if "num_experts" in shape:
        experts = {"num_local_experts": shape["num_experts"], "num_experts_per_tok": shape["top_k"]}
    return getattr(transformers, f"{kind}Config")(
        vocab_size=shape["vocab_size"],
        hidden_size=shape["hidden_size"],
        intermediate_size=shape["ffn_hidden_size"],
        num_hidden_layers=shape["num_layers"],
        num_attention_heads=shape["num_attention_heads"],
        head_dim=shape["head_dim"],
        num_key_value_heads=shape["num_kv_heads"],
        max_position_embeddings=8192,
        use_cache=False,
        tie_word_embeddings=shape["tied_embeddings"],
        **experts,
    )


def model_of(torch, device, case: Case, shape: dict):
    """Return the model on the device, with the case's adapters and recomputation."""
    import transformers

    dtype = torch.bfloat16 if case.state == "bf16" else torch.float32
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = getattr(transformers, shape["class"])(config_of(shape))
    torch.set_default_dtype(torch.float32)
    if case.full:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if case.lora_rank:
        import peft

        model = peft.get_peft_model(
            model,
            peft.LoraConfig(
                r=case.lora_rank,
                lora_alpha=2 * case.lora_rank,
                lora_dropout=0.0,
                target_modules=[
                    "q_proj",
                    "k_proj",
                    "v_proj",
                    "o_proj",
                    "gate_proj",
                    "up_proj",
                    "down_proj",
                ],
            ),
        )
    return model.train()


def stepper(torch, device, case: Case, shape: dict):
    """Return a function that trains one step."""
    model = model_of(torch, device, case, shape)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    run = torch.compile(model) if case.compiled else model
    size = (case.microbatches, case.batch, case.sequence)
    tokens = torch.randint(shape["vocab_size"], size, device=device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for part in tokens:
            with torch.autocast(device.type, torch.bfloat16, enabled=case.state == "amp"):
                loss = run(input_ids=part, labels=part).loss / case.microbatches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()

    def rest() -> None:
        optimizer.zero_grad(set_to_none=True)

    return step, rest, sum(p.numel() for p in model.parameters())


KINDS = {
    "attention": ("flash", "fmha", "attention"),
    "product": ("gemm", "cutlass", "cublas", "nvjet", "splitk", "gemv"),
    "optimizer": ("multi_tensor", "adam", "lpnorm"),
    "copy": ("memcpy", "memset"),
    "triton": ("triton",),
}


def kind_of(name: str) -> str:
    """Return the kind of a kernel, judged by its name."""
    low = name.lower()
    return next((kind for kind, words in KINDS.items() if any(w in low for w in words)), "other")


def profiled(torch, step, trace: str) -> tuple[dict, dict]:
    """Return the device's seconds and kernels in one step by kind, and write its trace."""
    profiler = torch.profiler
    kinds = [profiler.ProfilerActivity.CUDA]
    if trace:
        kinds.append(profiler.ProfilerActivity.CPU)
    with profiler.profile(activities=kinds) as seen:
        step()
        torch.cuda.synchronize()
    if trace:
        seen.export_chrome_trace(trace)
    seconds: dict[str, float] = {}
    count: dict[str, int] = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kind = kind_of(event.name)
            seconds[kind] = seconds.get(kind, 0.0) + event.device_time * 1e-6
            count[kind] = count.get(kind, 0) + 1
    return seconds, count


def timed(torch, device, name: str, case: Case, shape: dict, trace: str) -> dict:
    """Time one case and return its record."""
    cuda = device.type == "cuda"
    if cuda:
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    record = record_of(name, case, shape)
    try:
        step, rest, parameters = stepper(torch, device, case, shape)
        record["parameters"] = parameters
        for _ in range(3):
            step()
        spent = []
        for _ in range(10):
            if cuda:
                torch.cuda.synchronize()
            started = time.perf_counter()
            step()
            if cuda:
                torch.cuda.synchronize()
            spent.append(time.perf_counter() - started)
        record |= {"step_time_s": statistics.median(spent), "step_time_least_s": min(spent)}
        if cuda:
            free, total = torch.cuda.mem_get_info()
            record["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
            record["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
            record["used_on_device_bytes"] = total - free
            rest()
            record["held_bytes"] = torch.cuda.memory_allocated()
            record["kernel_seconds"], record["kernels"] = profiled(torch, step, trace)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        record |= {"out_of_memory": True, "message": str(error).splitlines()[0]}
    return record


def record_of(name: str, case: Case, shape: dict) -> dict:
    """Return the fields of a record that are known before the case runs."""
    import torch
    import transformers

    return {
        "id": name,
        "model_class": shape["class"],
        "shape": {key: value for key, value in shape.items() if key != "class"},
        "hardware": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "num_accelerators": 1,
        "micro_batch": case.batch,
        "microbatches": case.microbatches,
        "global_batch_sequences": case.batch * case.microbatches,
        "seq_length": case.sequence,
        "precision": "BF16",
        "state": STATES[case.state],
        "recompute": "full" if case.full else "none",
        "framework": "transformers",
        "release": f"{transformers.__version__}, torch {torch.__version__}",
        "compiled": case.compiled,
        "attention": "sdpa",
    } | ({"lora_rank": case.lora_rank, "lora_targets": "all-linear"} if case.lora_rank else {})


def warmed(torch, device, case: Case, shape: dict) -> None:
    """Compile and run a step, so that the compiler's cache on disk contains its kernels."""
    step, _, _ = stepper(torch, device, case, shape)
    step()
    torch.cuda.synchronize()


def main() -> None:
    """Time the cases and write their records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="the file to write")
    parser.add_argument("--only", default="", help="cases, with commas; all if empty")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--trace", default="", help="write a trace of the last case to this file")
    parser.add_argument("--warm", action="store_true", help="only fill the compiler's cache")
    parser.add_argument("--until", type=float, default=0, help="start no case after so many s")
    options = parser.parse_args()
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    names = options.only.split(",") if options.only else list(CASES)
    records, began = [], time.monotonic()
    for name in names:
        case, shape = CASES[name], SHAPES[CASES[name].model]
        if options.until and time.monotonic() - began > options.until:
            print(f"no time left for {name}", flush=True)
            break
        if options.tiny:
            shape = shape | TINY | ({"num_kv_heads": 4} if "GPT2" in shape["class"] else {})
            case = replace(case, batch=2, sequence=32)
        if options.warm:
            warmed(torch, device, case, shape)
            continue
        started = time.monotonic()
        try:
            records.append(timed(torch, device, name, case, shape, options.trace))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
            continue
        finally:
            torch.set_default_dtype(torch.float32)
            gc.collect()
            if options.tiny is False:
                torch._dynamo.reset()
        last = records[-1]
        print(
            f"{name}: {last.get('step_time_s', last.get('message'))} s a step, "
            f"{time.monotonic() - started:.1f} s in all",
            flush=True,
        )
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"runs": records}, file, indent=1)


if __name__ == "__main__":
    main()
