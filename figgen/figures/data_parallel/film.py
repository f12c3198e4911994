"""A film of buckets in the backward pass: filled, sent during computing, exposed at the end."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import check_between
from figgen.figures.data_parallel.overlap import (
    GRADIENT_BYTES,
    Overlap,
    filled_buckets,
    overlap,
    overlap_values,
)
from figgen.figures.data_parallel.replicas import job
from figgen.models.algorithms.gradient_overlap import MIB, ReducedBucket
from figgen.plotting.placed import thing_at
from figgen.registry import figure
from figgen.units import format_quantity

LEFT, WIDE, HIGH = 62.0, 274.0, 22.0
KEY, WHOLE, BUCKETS, BACKWARD, NETWORK = 0.0, 24.0, 76.0, 96.0, 124.0
"""Tops of the key, of the rows of one all-reduce, of the words over the buckets, and their rows."""


@figure("bucket-film", of_reference=True)
def bucket_film(
    *,
    model: str = "llama-3-1b",
    preset: str = "h100-ndr",
    ranks: int = 8,
    ranks_per_node: int = 1,
    tokens: int = 8192,
    bucket_mib: int = 350,
    first_bucket_mib: int = 150,
    utilization: float = 0.4,
    gradient_bytes: int = GRADIENT_BYTES,
) -> Film:
    """One backward pass whose gradients are sent in buckets, below one that sends them at its end.

    Buckets are filled from the model's own matrices, last layer first, by PyTorch's rule.
    """
    check_between("bucket_mib", bucket_mib, 1, 2**20)
    found = job(
        model=model,
        node=hardware_preset(preset),
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        tokens=tokens,
        utilization=utilization,
    )
    check_between("gradient_bytes", gradient_bytes, 1, 4)
    buckets = filled_buckets(
        model, found, first_bucket_mib * MIB, bucket_mib * MIB, gradient_bytes=gradient_bytes
    )
    check_between("buckets", len(buckets), 2, 12)
    times = overlap(found, buckets, gradient_bytes=gradient_bytes)
    events = sorted({time for b in buckets for time in (b.ready_s, b.end_s)})
    scenes = _scenes(buckets, times, events, ranks)
    over = 1 + events.index(times.backward_s)
    return Film(
        width=LEFT + WIDE,
        height=NETWORK + HIGH + 4,
        scenes=tuple(scenes),
        stills=(1, over // 2, over, len(scenes) - 1),
        opens=len(scenes) - 1,
        values=overlap_values(times, buckets, ranks=ranks, tokens=tokens)
        | {"utilization": Named(utilization)},
    )


def _scenes(
    buckets: tuple[ReducedBucket, ...], times: Overlap, events: list[float], ranks: int
) -> list[Scene]:
    """Return a scene for the beginning and for each event."""
    backward, end, last = times.backward_s, times.naive_s, buckets[-1].end_s
    picture = _Picture(buckets, backward, end)
    asks = {
        buckets[0].ready_s: _first(buckets),
        backward: _last(1 - times.hidden, late=buckets[-1].start_s > backward),
    }
    first = "Backward begins with the last layer. No gradient is final, so nothing is sent."
    done = (
        f"All gradients are the mean of {ranks} after {_time(last)}; one all-reduce after "
        f"backward would take until {_time(end)}."
    )
    scenes = [Scene(says=first, things=picture.at(0.0))]
    for now in events[:-1]:
        says = _caption(buckets, now, backward, ranks)
        scenes.append(Scene(says=says, things=picture.at(now), asks=asks.get(now)))
    return [*scenes, Scene(says=done, things=picture.at(last))]


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s", "time")


def _caption(buckets: tuple[ReducedBucket, ...], now: float, backward: float, ranks: int) -> str:
    """Return the event at `now`: a bucket is full, or an all-reduce ends."""
    full = [at for at, bucket in enumerate(buckets) if bucket.ready_s == now]
    if not full:
        done = next(at for at, bucket in enumerate(buckets) if bucket.end_s == now)
        waits = buckets[done + 1].start_s > now
        rest = "the network waits for the next" if waits else f"bucket {done + 1} follows"
        return f"{_time(now)}: bucket {done} is the same on all {ranks} GPUs; {rest}."
    bucket = buckets[full[0]]
    sent = "and is sent" if bucket.start_s == now else "and waits for the network"
    size = format_quantity(bucket.bytes, "B", "bytes")
    over = "backward is over" if now == backward else "backward goes on below"
    return f"{_time(now)}: bucket {full[0]}, {_layers(bucket)}, {size}, is full {sent}; {over}."


def _layers(bucket: ReducedBucket) -> str:
    """Return the layers whose gradients a bucket holds, in words."""
    layers = sorted({t.layer for t in bucket.tensors if t.layer is not None})
    names = "layer {0}" if len(layers) == 1 else "layers {1} to {0}"
    words = [names.format(layers[0], layers[-1])] if layers else []
    if any(t.layer is None for t in bucket.tensors):
        words.append("the embedding")
    return " and ".join(words)


def _first(buckets: tuple[ReducedBucket, ...]) -> Question:
    return Question(
        text=f"Bucket 0 holds the gradients of {_layers(buckets[0])}. When may its all-reduce "
        "start?",
        choices=("when backward ends", "now", "when all buckets are full"),
        right=1,
        because="Nothing will change these gradients any more, and the network has nothing to do.",
    )


def _last(share: float, *, late: bool) -> Question:
    queued = "The network still has earlier buckets to send, and the last one is full only now."
    alone = "The last bucket is full only now, when there is nothing left to hide behind."
    return Question(
        text="Backward ends now. How much of the all-reduce, by time, sticks out behind it?",
        choices=("nothing", f"{share:.0%}", "all of it"),
        right=1 if share > 0 else 0,
        because=queued if late else alone,
    )


def _key() -> list[Thing]:
    """Return the meaning of the colors."""
    things = []
    words = (
        ("backward", "backward", 54),
        ("hidden", "sent meanwhile", 92),
        ("exposed", "the GPU waits", 80),
    )
    x = 0.0
    for role, text, width in words:
        things.append(thing_at(f"key {role}", (x, KEY + 2), (10, 10), role=role))
        things.append(thing_at(f"words {role}", (x + 14, KEY), (width, 14), text))
        x += width + 22
    return things


class _Picture:
    """The film at any time: one all-reduce above; below, buckets on the GPU and on the network."""

    def __init__(self, buckets: tuple[ReducedBucket, ...], backward_s: float, end_s: float) -> None:
        self.buckets, self.backward_s, self.end_s = buckets, backward_s, end_s
        self.scale = WIDE / end_s

    def at(self, now: float) -> tuple[Thing, ...]:
        whole = f"one all-reduce, after backward: {_time(self.end_s)}"
        last = f"in {len(self.buckets)} buckets: {_time(self.buckets[-1].end_s)}"
        rows = (
            ("whole", whole, LEFT, WHOLE),
            ("buckets", last, LEFT, BUCKETS),
            ("GPU", "GPU", 0.0, BACKWARD),
            ("network", "network", 0.0, NETWORK),
        )
        things = [
            thing_at(
                f"row {name}",
                (x, y),
                (WIDE * (x > 0) + LEFT * (x == 0), HIGH if x == 0 else 16),
                text,
            )
            for name, text, x, y in rows
        ]
        things += [*_key(), *self._whole()]
        before = 0.0
        for at, bucket in enumerate(self.buckets):
            if before <= now:
                things.append(
                    self._slot(
                        f"work {at}", "backward", BACKWARD, before, bucket.ready_s, f"{at}", now
                    )
                )
            before = max(before, bucket.ready_s)
            if bucket.start_s <= now:
                things += self._message(at, bucket, now)
        x = LEFT + now * self.scale
        things.append(
            thing_at(
                "cursor",
                (x - 1, BACKWARD - 3),
                (1.5, NETWORK + HIGH - BACKWARD + 6),
                role="neutral",
            )
        )
        return tuple(things)

    def _whole(self) -> tuple[Thing, ...]:
        """Return the timeline with one all-reduce after the backward pass."""
        y = WHOLE + 18
        sent = self._slot(
            "one", "exposed", y, self.backward_s, self.end_s, "one all-reduce", self.end_s
        )
        work = self._slot("whole", "backward", y, 0.0, self.backward_s, "backward", self.end_s)
        head = thing_at("row both", (0, y), (LEFT, HIGH), "GPU")
        return (head, work, sent)

    def _message(self, at: int, bucket: ReducedBucket, now: float) -> list[Thing]:
        split = min(max(self.backward_s, bucket.start_s), bucket.end_s)
        sides = (("hidden", bucket.start_s, split), ("exposed", split, bucket.end_s))
        wider = max(sides, key=lambda side: side[2] - side[1])
        came = LEFT + bucket.start_s * self.scale, BACKWARD
        return [
            self._slot(
                f"sent {at} {role}",
                role,
                NETWORK,
                start,
                end,
                f"{at}" if (role, start, end) == wider else "",
                now,
                came if bucket.start_s == now else None,
            )
            for role, start, end in sides
            if end > start
        ]

    def _slot(
        self,
        name: str,
        role: str,
        y: float,
        start: float,
        end: float,
        text: str,
        now: float,
        origin: tuple[float, float] | None = None,
    ) -> Thing:
        return thing_at(
            name,
            (LEFT + start * self.scale, y),
            (max(1.0, (end - start) * self.scale), HIGH),
            text,
            role,
            origin=origin,
            strong=start <= now < end,
        )
