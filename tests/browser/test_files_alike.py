"""Browser and command line accept and refuse the same files, with the same words."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

from figgen.errors import InputError
from figgen.models.memory.plain_pickle import plain_pickle
from figgen.models.profiles.trace_reader import trace_events
from figgen.scenarios.options.config_json import model_from_file
from tests.browser.engine import Ask
from tests.models.test_plain_pickle import FEW_BYTES, damaged

SUITES = "pickle_suites.js"
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 128,
}  # fmt: skip


def read(content: bytes) -> str:
    try:
        plain_pickle(io.BytesIO(content))
    except InputError as error:
        return str(error)
    return "read"


def test_damaged_pickles_are_refused_in_the_same_words(ask: Ask) -> None:
    files = [*FEW_BYTES.values(), *damaged(11, 2000)]
    shown = ask("pickles", [content.hex() for content in files])
    differing = [
        (content, found, here)
        for content, found in zip(files, shown, strict=True)
        if found != (here := read(content))
    ]
    assert differing == []
    assert Counter(found == "read" for found in shown)[True] > 20


def test_a_value_is_as_long_as_any_name_and_no_longer(ask: Ask) -> None:
    """A file of 9 MB used to unpack to a value that took 6 GB of memory."""
    sizes = [2**26, 2**26 + 1]
    said = [read(b"\x80\x04\x8e" + n.to_bytes(8, "little") + bytes(n) + b".") for n in sizes]
    assert ask("long", sizes) == said
    assert said[0] == "read"
    assert "a value of more than 67,108,864 bytes" in said[1]


def test_a_config_json_with_a_slip_is_refused_by_both_in_the_same_words(
    ask: Ask, tmp_path: Path
) -> None:
    whole = json.dumps(CONFIG)
    texts = [
        whole,
        whole.replace("{", '{"hidden_size": 32, ', 1),  # one of the two would win in silence
        whole.replace("64", "NaN"),
        whole.replace("64", "Infinity"),
        whole.replace("64", "064"),
        whole.replace("{", '{"a": ' + "[" * 100_000 + "]" * 100_000 + ", ", 1),
        whole.replace("{", '{"a": ' + '{"b": ' * 300 + "1" + "}" * 300 + ", ", 1),
        whole.replace("{", '{"a": {"b": 1}, "c": [{"b": 1}, {"b": "\\"{[:"}], ', 1),
        whole.replace("{", '{"a": "' + "[" * 500 + '", ', 1),
        "[" * 100_000,
        "",
        "null",
        "[1]",
        whole.replace("{", '{"\\u0068idden_size": 32, ', 1),
        whole.replace("64", '"64"'),
        whole.replace("64", "1e400"),
        whole[:-3],
        whole.replace("{", '{"tie_word_embeddings": "false", ', 1),
        whole.replace("{", '{"text_config": {"hidden_size": "64"}, ', 1),
    ]
    said = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.json"
        path.write_text(text, encoding="utf-8")
        try:
            model_from_file(str(path))
            said.append("read")
        except InputError as error:
            said.append(str(error))
    assert ask("configs", texts) == said
    assert [number for number, words in enumerate(said) if words == "read"] == [0, 7, 8]
    assert said[14] == "hidden_size or n_embd or d_model: expected a whole number, got '\"64\"'"


def test_a_trace_is_as_deep_as_any_profiler_writes_and_no_deeper(ask: Ask, tmp_path: Path) -> None:
    """`deepargs.json` used to be accepted by one and refused by the other."""
    texts = [
        '{"traceEvents": [{"name": "x", "args": {"a": ' + "[" * deep + "1" + "]" * deep + "}}]}"
        for deep in (1, 150, 250, 1_000, 100_000)
    ]
    said = []
    for text in texts:
        path = tmp_path / "t.json"
        path.write_text(text, encoding="utf-8")
        try:
            said.append("read" if list(trace_events(str(path))) else "")
        except InputError as error:
            said.append(str(error).replace(str(path), "t.json"))
    assert ask("traces", texts) == said
    assert [found == "read" for found in said] == [True, True, False, False, False]
    assert "at most 200 nested lists and objects" in said[2]
