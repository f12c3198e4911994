"""Pickles of plain data: which are read, which are refused, and that neither takes much memory."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import resource
import subprocess
import sys
import tracemalloc
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


RECORDED = ROOT / "tests" / "oracles" / "profiles" / "llama1b-amp-eager.pickle.gz"


def stacks(rng: random.Random) -> list[dict[str, Any]]:
    """Return events whose frames are repeated, as torch writes them."""
    names = [f"name {number}" for number in range(300)]

    def frame() -> dict[str, Any]:
        return {"name": rng.choice(names[:9]), "filename": names[1], "line": rng.choice(CHOICES)}

    return [
        {"action": "alloc", "addr": at, "frames": [frame() for _ in range(rng.randrange(9))]}
        for at in range(2000)
    ]


CHOICES = (1, 300, 70_000, -5, None, True, 0x7D, 0x94, 0x7D942894)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_frames_that_are_written_again_are_read_as_they_stand(protocol: int) -> None:
    events = stacks(random.Random(protocol))
    assert plain_pickle(io.BytesIO(pickle.dumps(events, protocol=protocol))) == events


def test_a_place_that_is_named_twice_is_read_as_it_stands() -> None:
    """Once a file has overwritten a place of its memo, the same bytes mean a different dict."""
    same = b"}\x94(h\x00K\x01u"
    rows = b"(" + same + same + b"e"
    file = b"X\x01\x00\x00\x00b\x94]" + rows + b"X\x01\x00\x00\x00aq\x000]" + rows + b"."
    assert pickle.loads(file) == [{"a": 1}, {"a": 1}]
    assert plain_pickle(io.BytesIO(file)) == pickle.loads(file)


def test_a_recorded_snapshot_is_read_in_less_than_half_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch writes each frame again with every stack."""
    written = gzip.decompress(RECORDED.read_bytes())
    monkeypatch.setattr("figgen.models.memory.plain_pickle.PIECE", 1 << 18)
    peaks, found = [], []
    for read in (plain_pickle, pickle.load):
        tracemalloc.start()
        found.append(read(io.BytesIO(written)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert found[0] == found[1]
    assert peaks[0] < peaks[1] / 2
    frames = [f for event in found[0]["device_traces"][0] for f in event["frames"]]
    assert len({id(frame) for frame in frames}) < len(frames) / 5


def test_a_long_text_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining each piece to the earlier ones took time quadratic in the length."""
    monkeypatch.setattr("figgen.models.memory.plain_pickle.PIECE", 1 << 10)
    long = {"text": "é" * 2**20, "bytes": b"b" * 2**22}
    written = pickle.dumps([long, long], protocol=4)
    tracemalloc.start()
    assert plain_pickle(io.BytesIO(written)) == [long, long]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(written)


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
    """CPython allocates a memo of two gigabytes for nine bytes, and more for a length alone."""
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
    assert "snapshot: expected a pickle written by torch, got" in said[0]
    assert int(kilobytes) < 20_000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the end of the file"),
        (b"\x80\x05K", "the end of the file"),
        (b"\x80\x06N.", "a protocol above 5"),
        (b"a.", "operations that do not fit each other"),
        (b"h\x05.", "operations that do not fit each other"),
        (b"\x8c\x01\xff.", "not UTF-8"),
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
    """Return pickles with changed, lost or added bytes, and operations in random order."""
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
