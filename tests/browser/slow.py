"""A slow browser and a slow host, with which tests that read too early fail."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.browser.site import Handler

KINDS = (b"--type=renderer", b"--type=gpu-process", b"--type=utility")
RUN_S = 0.01  # that a process runs between two rests, on average


def parts(parent: int) -> set[int]:
    """Return the program's browser processes that run pages and workers, draw them, and fetch."""
    above = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            above[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])

    def is_ours(pid: int) -> bool:
        return pid == parent or (pid in above and is_ours(above[pid]))

    found = set()
    for pid in filter(is_ours, above):
        with contextlib.suppress(OSError):
            if any(kind in Path(f"/proc/{pid}/cmdline").read_bytes() for kind in KINDS):
                found.add(pid)
    return found


@contextlib.contextmanager
def throttled(rate: float) -> Iterator[None]:
    """Let each browser process of this program run for a random `rate`-th of the time.

    This takes no processor time from others, and changes the order of events in a page: its timers,
    frames, workers and responses, and the requests of the test.
    """
    over, rng = threading.Event(), random.Random(0)
    known: dict[int, tuple[float, bool]] = {}  # process → when it is stopped or continued next

    def send(pid: int, what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)

    def stutter() -> None:
        looked = 0.0
        while not over.wait(0.002):
            now = time.monotonic()
            if now > looked + 0.25:
                looked, there = now, parts(os.getpid())
                for pid in known.keys() - there:
                    del known[pid]
                known.update(dict.fromkeys(there - known.keys(), (now, True)))
            for pid, (until, runs) in known.items():
                if now >= until:
                    mean = RUN_S * (rate - 1) if runs else RUN_S
                    known[pid] = (now + rng.expovariate(1 / mean), not runs)
                    send(pid, signal.SIGSTOP if runs else signal.SIGCONT)
        for pid in known:
            send(pid, signal.SIGCONT)

    thread = threading.Thread(target=stutter, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def late(delay_s: float) -> Iterator[None]:
    """Delay every response of the sites that tests serve by this time."""
    answer = Handler.send_head

    def send_head(handler: Handler) -> object:
        time.sleep(delay_s)
        return answer(handler)

    Handler.send_head = send_head  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Handler.send_head = answer  # type: ignore[method-assign]
