"""Words of distributed training that the press goes by when it reads a page."""

from __future__ import annotations

SPELLED = {"one_f_one_b": "1f1b"}
"""Names that values' names write otherwise, since none of these begins with a digit."""

SAME_SYMBOLS = (
    frozenset({"pp", "stages"}),
    frozenset({"microbatches", "accumulation_steps"}),
    frozenset({"message_bytes", "gradient_bytes"}),  # a gradient is the message of its all-reduce
)
"""Arguments that share a letter because they are one thing under two names."""

COUNTED = (
    "GPUs", "ranks", "nodes", "tokens", "parameters", "sequences", "layers", "microbatches",
    "steps", "experts", "messages",
)  # fmt: skip
"""Things that a page counts."""

NAMES = r"(?:[A-Z]+\d+\w*|SXM\d?|PCIe|HBM\w*)[ \u00a0-]\d+ ?GB\b|\b\d+(?:\.\d+)?[BMKT]\b(?!/)"
"""Names with a quantity in them, which state none: "A100 80GB", "Llama 3 405B"."""
