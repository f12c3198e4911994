"""Words of distributed training that the press needs to check a page."""

from __future__ import annotations

SPELLED = {"one_f_one_b": "1f1b"}
"""Names that are spelled differently in names of values, which cannot begin with a digit."""

SAME_SYMBOLS = (
    frozenset({"pp", "stages"}),
    frozenset({"microbatches", "accumulation_steps"}),
    frozenset({"message_bytes", "gradient_bytes"}),  # a gradient is the message of its all-reduce
)
"""Arguments that share a letter because they are the same thing under two names."""

COUNTED = (
    "GPUs", "ranks", "nodes", "tokens", "parameters", "sequences", "layers", "microbatches",
    "steps", "experts", "messages",
)  # fmt: skip
"""Plural nouns that pages count."""

NAMES = r"(?:[A-Z]+\d+\w*|SXM\d?|PCIe|HBM\w*)[ \u00a0-]\d+ ?GB\b|\b\d+(?:\.\d+)?[BMKT]\b(?!/)"
"""Names that contain a quantity without stating one: "A100 80GB", "Llama 3 405B"."""
