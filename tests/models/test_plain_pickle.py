"""Pickles of plain data: what is read, what is refused, and that neither takes memory."""

from __future__ import annotations

import io
import pickle
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.memory.plain_pickle import plain_pickle

ROOT = Path(__file__).parents[2]
PLAIN: dict[str, Any] = {
    "segments": [{"address": 1 << 40, "blocks": [{"size": 5, "state": "inactive"}] * 3}],
    "numbers": [0, 1, 255, 256, -1, 70_000, 2**31, 2**63, 2**200, -(2**70), 1.5, True, False, None],
    "texts": ["", "é", "a" * 300, "b" * 70_000], "bytes": [b"", b"c" * 300],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
}  # fmt: skip
PLAIN["again"] = PLAIN["segments"]


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_plain_data_is_read_as_it_was_written(protocol: int) -> None:
    written = pickle.dumps(PLAIN, protocol=protocol)
    found = plain_pickle(io.BytesIO(written))
    assert found == PLAIN
    assert found["again"] is found["segments"]
    many = [{"action": "alloc", "addr": number} for number in range(200_000)]
    assert plain_pickle(io.BytesIO(pickle.dumps(many, protocol=protocol))) == many


FEW_BYTES = {
    "LONG_BINPUT": b"Nr\xff\xff\xff\x7f0N.", "LONG_BINPUT, small": b"Nr\xff\xff\xff\x00.",
    "BINUNICODE": b"X\xff\xff\xff\x7f.", "BINUNICODE8": b"\x8d\x00\x00\x00\x00\x02\x00\x00\x00.",
    "BINBYTES8": b"\x8e\x00\x00\x00\x00\x02\x00\x00\x00.",
    "BYTEARRAY8": b"\x96\x00\x00\x00\x00\x02\x00\x00\x00.",
    "FRAME": b"\x95\x00\x00\x00\x00\x02\x00\x00\x00q.", "PUT": b"Np2000000000\n.",
    "LONG4": b"\x8b\xff\xff\xff\x7f.",
}  # fmt: skip
PEAK = """import io, resource, sys
from figgen.errors import InputError
from figgen.models.memory.plain_pickle import plain_pickle
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    plain_pickle(io.BytesIO(bytes.fromhex(sys.argv[1])))
    print("read")
except InputError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
@pytest.mark.parametrize("name", FEW_BYTES)
def test_a_few_bytes_take_no_memory(name: str) -> None:
    """CPython makes a memo of two gigabytes for nine bytes, and more of a length alone."""
    words = [sys.executable, "-c", PEAK, FEW_BYTES[name].hex()]
    limit = (4 * 2**30, 4 * 2**30)
    done = subprocess.run(
        words,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    *said, kilobytes = done.stdout.splitlines()
    assert "snapshot: expected a pickle of torch, got" in said[0]
    assert int(kilobytes) < 20_000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the end of the file"),
        (b"\x80\x05K", "the end of the file"),
        (b"\x80\x06N.", "another protocol"),
        (b"a.", "operations that do not fit each other"),
        (b"h\x05.", "operations that do not fit each other"),
        (b"\x8c\x01\xff.", "no UTF-8"),
        (b"cposix\nsystem\n.", "posix.system"),
        (b"\x82\x01.", "the extension registry"),
        (b"\x8c\x05posix\x8c\x06system\x93.", "posix.system"),
        (b"NQ.", "a persistent name"),
        (b"I5\n.", "operation 0x49"),
        (b"\x8f.", "operation 0x8f"),
    ],
)
def test_what_is_broken_or_no_plain_data_is_said_in_words(content: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        plain_pickle(io.BytesIO(content))


def damaged(seed: int, count: int) -> list[bytes]:
    """Pickles with bytes that were changed, lost or added, and operations in any order."""
    rng = random.Random(seed)
    found = []
    small = PLAIN | {"texts": ["a"], "bytes": []}
    alphabet = b"(01N]})aestu.\x85\x86\x87\x94Khqrj\x8cX\x93ci\x82PK\x00\x01\x80\x04G\x95"
    for number in range(count):
        if number % 3 == 0:
            found.append(bytes(rng.choices(alphabet, k=rng.randint(1, 30))))
            continue
        data = bytearray(pickle.dumps(small, protocol=rng.randint(2, 5)))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            new = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
            data[at : at + rng.choice((0, 1, 1, 5))] = new
        found.append(bytes(data[: rng.choice((len(data), len(data), at + 1))]))
    return found


def test_whatever_is_damaged_ends_in_words() -> None:
    ends = set()
    for content in damaged(7, 3000):
        try:
            plain_pickle(io.BytesIO(content))
            ends.add("read")
        except InputError as error:
            ends.add(str(error).partition("expected ")[0])
    assert ends == {"read", "snapshot: "}
