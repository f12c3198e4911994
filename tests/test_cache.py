"""Pictures on disk are complete or missing, and never wrong."""

from __future__ import annotations

import threading

import pytest

from figgen import cache


def test_what_was_written_is_read(tmp_path):
    for text in ("<svg>ü</svg>\n", "a,b\r\n1,2\r\n", ""):
        cache.write(tmp_path / "new", "key", text)

        assert cache.read(tmp_path / "new", "key") == text


def test_a_missing_entry_is_none(tmp_path):
    assert cache.read(tmp_path, "key") is None


@pytest.mark.parametrize("cut", [0, 1, 64, 65, 66, 70])
def test_a_truncated_entry_is_not_served(tmp_path, cut):
    cache.write(tmp_path, "key", "<svg>picture</svg>")
    whole = (tmp_path / "key").read_bytes()
    (tmp_path / "key").write_bytes(whole[:cut])

    assert cache.read(tmp_path, "key") is None


def test_any_flipped_byte_is_noticed(tmp_path):
    cache.write(tmp_path, "key", "<svg>picture</svg>")
    whole = (tmp_path / "key").read_bytes()
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0x81
        (tmp_path / "key").write_bytes(broken)
        assert cache.read(tmp_path, "key") is None, place


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        cache.write(tmp_path, "key", "\ud800")

    assert list(tmp_path.iterdir()) == []


def test_many_writers_of_one_key_leave_one_whole_entry(tmp_path):
    pictures = [f"<svg>{n}</svg>" * 1000 for n in range(8)]
    threads = [threading.Thread(target=cache.write, args=(tmp_path, "key", p)) for p in pictures]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert cache.read(tmp_path, "key") in pictures
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_pruning_keeps_what_is_in_use(tmp_path):
    for n in range(6):
        cache.write(tmp_path, f"key-{n}", "x")

    assert cache.prune(tmp_path, keep={"key-0", "key-1"}, limit=3) == 3
    assert {"key-0", "key-1"} < {path.name for path in tmp_path.iterdir()}
