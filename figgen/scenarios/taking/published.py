"""Sizes of published models that people fine-tune and that the catalog doesn't have.

Source: each model's config.json on Hugging Face; `tests/taking/test_published.py` compares sizes
with those in Lightning-AI/litgpt litgpt/config.py and sums of parameters with published totals.
"""

from __future__ import annotations

PUBLISHED = (
    ("deepseekr1distillqwen15b", "28 1536 12 2 128 8960 151936 b"),
    ("deepseekr1distillqwen7b", "28 3584 28 4 128 18944 152064 b"),
    ("deepseekr1distillqwen14b", "48 5120 40 8 128 13824 152064 b"),
    ("deepseekr1distillqwen32b", "64 5120 40 8 128 27648 152064 b"),
    ("deepseekv2lite", "27 2048 16 16 0 10944 102400 64 6 1408 2 1 512 128 64 128"),
    ("qwen2505b", "24 896 14 2 64 4864 151936 tb"),
    ("qwen205b", "24 896 14 2 64 4864 151936 tb"),
    ("qwen2515b", "28 1536 12 2 128 8960 151936 tb"),
    ("qwen215b", "28 1536 12 2 128 8960 151936 tb"),
    ("qwen253b", "36 2048 16 2 128 11008 151936 tb"),
    ("qwen257b", "28 3584 28 4 128 18944 152064 b"),
    ("qwen27b", "28 3584 28 4 128 18944 152064 b"),
    ("qwen2514b", "48 5120 40 8 128 13824 152064 b"),
    ("qwen2532b", "64 5120 40 8 128 27648 152064 b"),
    ("qwq32b", "64 5120 40 8 128 27648 152064 b"),
    ("qwen2572b", "80 8192 64 8 128 29568 152064 b"),
    ("qwen272b", "80 8192 64 8 128 29568 152064 b"),
    ("qwen306b", "28 1024 16 8 128 3072 151936 tq"),
    ("qwen317b", "28 2048 16 8 128 6144 151936 tq"),
    ("qwen34b", "36 2560 32 8 128 9728 151936 tq"),
    ("llama323b", "28 3072 24 8 128 8192 128256 t"),
    ("tinyllama11b", "22 2048 32 4 64 5632 32000 "),
    ("codellama34b", "48 8192 64 8 128 22016 32000 "),
    ("mistralnemo", "40 5120 32 8 128 14336 131072 "),
    ("mistralsmall24b", "40 5120 32 8 128 32768 131072 "),
    ("phi3mini4k", "32 3072 32 32 96 8192 32064 "),
    ("phi3mini128k", "32 3072 32 32 96 8192 32064 "), ("phi35mini", "32 3072 32 32 96 8192 32064 "),
    ("phi4", "40 5120 40 10 128 17920 100352 "),
    ("yi6b", "32 4096 32 4 128 11008 64000 "),
    ("yi34b", "60 7168 56 8 128 20480 64000 "),
    ("deepseekcoder67b", "32 4096 32 32 128 11008 32256 "),
    ("deepseekcoder33b", "62 7168 56 8 128 19200 32256 "),
    ("deepseekllm7b", "30 4096 32 32 128 11008 102400 "),
    ("deepseekllm67b", "95 8192 64 8 128 22016 102400 "),
    ("internlm27b", "32 4096 32 8 128 14336 92544 "),
    ("internlm220b", "48 6144 48 8 128 16384 92544 "),
    ("smollm2135m", "30 576 9 3 64 1536 49152 t"),
    ("smollm2360m", "32 960 15 5 64 2560 49152 t"),
    ("smollm360m", "32 960 15 5 64 2560 49152 t"),
    ("smollm217b", "24 2048 32 32 64 8192 49152 t"),
    ("smollm33b", "36 2048 16 4 128 11008 128256 t"),
    ("baichuan27b", "32 4096 32 32 128 11008 125696 "),
    ("baichuan213b", "40 5120 40 40 128 13696 125696 "),
)  # fmt: skip
"""Sizes by model name without punctuation: layers, width, query heads, KV heads, width of a head,
of the feed-forward block, and rows of the embedding table.

`t` marks a shared table, `b` biases of queries, keys and values, `q` norms of queries and keys. For
DeepSeek's latent attention there are also experts, chosen and shared ones, dense layers and ranks.
"""

PLAIN = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
LATENT = (
    "experts", "top_k", "expert_ffn", "shared_experts", "dense_layers", "kv_rank",
    "nope_head_dim", "rope_head_dim", "value_head_dim",
)  # fmt: skip


def published_sizes(said: str) -> dict[str, int | str | bool]:
    """Return the sizes of the model that a name means, by option; nothing for an unknown one.

    The name may continue after that of the model: `Qwen2.5-7B-Instruct-1M`.
    """
    plain = ""
    for letter in said.rstrip("/").rpartition("/")[2].lower():
        plain += letter if letter.isalnum() else ""
    if plain.startswith("qwen"):  # for code and mathematics in the same sizes
        plain = plain.replace("coder", "").replace("math", "")
    for name, text in PUBLISHED:
        rest = plain[len(name) :]
        if plain.startswith(name) and not rest[:1].isdigit() and not _is_other(rest):
            return _sizes(text)
    return {}


def _is_other(rest: str) -> bool:
    """Return whether the rest of a name makes it a different model, such as `Phi-4-mini`."""
    return any(word in rest for word in ("vl", "mini", "omni", "vision", "moe"))


def _sizes(text: str) -> dict[str, int | str | bool]:
    words = text.split(" ")
    found: dict[str, int | str | bool] = {}
    names = PLAIN if len(words) < len(PLAIN) + len(LATENT) else (*PLAIN, *LATENT)
    for name, word in zip(names, words, strict=False):
        if word != "0":
            found[name] = int(word)
    marks = words[-1] if len(words) == len(PLAIN) + 1 else ""
    found["tied"] = "t" in marks
    if "b" in marks:
        found["qkv_bias"] = True
    if "q" in marks:
        found["qk_norm"] = "per-head"
    return found
