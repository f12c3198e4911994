"""A film of buckets during the backward pass: filled, sent while work goes on, exposed."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import check_between
from figgen.figures.data_parallel.overlap import (
    GRADIENT_BYTES,
    filled_buckets,
    overlap,
    overlap_values,
)
from figgen.figures.data_parallel.replicas import job
from figgen.models.algorithms.gradient_overlap import MIB, ReducedBucket
from figgen.registry import figure
from figgen.units import format_quantity

LEFT, WIDE, HIGH, BOX = 54.0, 282.0, 22.0, 16.5
LAYERS, BACKWARD, NETWORK, AFTER = 22.0, 60.0, 88.0, 120.0
"""Tops of the rows."""

NARROWEST = 16.0
"""Boxes narrower than this have no layer number."""


@figure("bucket-film")
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
    """One backward pass by bucket: gradients that are final, on their way, and everywhere.

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
    backward, end, last = times.backward_s, times.naive_s, buckets[-1].end_s
    picture = _Picture(buckets, backward, end)
    scenes = [
        Scene(
            says="Backward begins with the last layer. No gradient is final, nothing can be sent.",
            things=picture.at(0.0),
        )
    ]
    asks = {
        buckets[0].ready_s: _first(buckets),
        backward: _last(1 - times.hidden, late=buckets[-1].start_s > backward),
    }
    events = sorted({time for b in buckets for time in (b.ready_s, b.end_s)})
    for now in events[:-1]:
        says = _said(buckets, now, backward, ranks)
        scenes.append(Scene(says=says, things=picture.at(now), asks=asks.get(now)))
    scenes.append(
        Scene(
            says=f"All gradients are the mean of {ranks} after {_time(last)}. One all-reduce after "
            f"the backward would have ended after {_time(end)}.",
            things=(*picture.at(last), *picture.after()),
        )
    )
    over = 1 + events.index(backward)
    return Film(
        width=LEFT + WIDE,
        height=AFTER + HIGH,
        scenes=tuple(scenes),
        stills=(1, over // 2, over, len(scenes) - 1),
        opens=over // 2,
        values=overlap_values(times, buckets, ranks=ranks, tokens=tokens)
        | {"utilization": Named(utilization)},
    )


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s", "time")


def _said(buckets: tuple[ReducedBucket, ...], now: float, backward: float, ranks: int) -> str:
    """The event at `now`: a bucket is full, or an all-reduce ends."""
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
    return f"{_time(now)}: bucket {full[0]} is full, {size}, {sent}; {over}."


def _first(buckets: tuple[ReducedBucket, ...]) -> Question:
    layers = sorted({t.layer for t in buckets[0].tensors if t.layer is not None})
    names = f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[-1]} to {layers[0]}"
    return Question(
        text=f"Bucket 0 is full with gradients of {names}. When may its all-reduce start?",
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
    """The meaning of the layers' colors."""
    things = []
    words = (
        ("backward-weight", "final", 40),
        ("hidden", "on its way", 76),
        ("dp", "everywhere", 80),
    )
    x = LEFT
    for role, text, width in words:
        things.append(Thing(name=f"key {role}", role=role, x=x, y=2, width=10, height=10))
        things.append(Thing(name=f"words {role}", text=text, x=x + 14, y=0, width=width, height=14))
        x += width + 20
    return things


class _Picture:
    """The objects of the film at any time: layers above, work and messages below on one axis."""

    def __init__(self, buckets: tuple[ReducedBucket, ...], backward_s: float, end_s: float) -> None:
        self.buckets, self.backward_s = buckets, backward_s
        self.scale = WIDE / end_s
        # A layer's gradient is whole when the last of its tensors is there.
        self.layers = {t.layer: at for at, bucket in enumerate(buckets) for t in bucket.tensors}
        self.final = {t.layer: t.ready_share * backward_s for b in buckets for t in b.tensors}

    def at(self, now: float) -> tuple[Thing, ...]:
        things = [
            Thing(name=f"row {text}", text=text, x=0, y=y, width=LEFT, height=HIGH)
            for text, y in (("layers", LAYERS), ("backward", BACKWARD), ("network", NETWORK))
        ]
        things += _key()
        things += self._layers(now)
        before = 0.0
        for at, bucket in enumerate(self.buckets):
            if before <= now:
                things.append(
                    self._slot(
                        f"work {at}", "backward", BACKWARD, before, bucket.ready_s, f"b{at}", now
                    )
                )
            before = max(before, bucket.ready_s)
            if bucket.start_s <= now:
                things += self._message(at, bucket, now)
        x = LEFT + now * self.scale
        things.append(
            Thing(
                name="cursor",
                role="neutral",
                x=x - 1,
                y=BACKWARD - 3,
                width=1.5,
                height=NETWORK + HIGH - BACKWARD + 6,
            )
        )
        return tuple(things)

    def after(self) -> tuple[Thing, ...]:
        """The time with one all-reduce after the backward pass."""
        sent = self._slot(
            "one", "exposed", AFTER, self.backward_s, WIDE / self.scale, "one all-reduce", 0.0
        )
        work = self._slot("whole", "backward", AFTER, 0.0, self.backward_s, "whole backward", 0.0)
        head = Thing(name="row after", text="or after", x=0, y=AFTER, width=LEFT, height=HIGH)
        return (head, work, sent)

    def _layers(self, now: float) -> list[Thing]:
        names = [layer for layer in self.layers if layer is not None]
        step = min(BOX, WIDE / (len(names) + 1))
        found = []
        for place, layer in enumerate((*names, None)):
            bucket = self.buckets[self.layers[layer]]
            role, strong = "idle", False
            if bucket.end_s <= now:
                role, strong = "dp", True
            elif bucket.start_s <= now:
                role = "hidden"
            elif self.final[layer] <= now:
                role = "backward-weight"
            found.append(
                Thing(
                    name=f"layer {layer}",
                    role=role,
                    x=LEFT + place * step,
                    y=LAYERS,
                    width=step - 2,
                    height=HIGH,
                    strong=strong,
                    text="" if step < NARROWEST else "E" if layer is None else str(layer),
                )
            )
        return found

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
                f"b{at}" if (role, start, end) == wider else "",
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
        return Thing(
            name=name,
            text=text,
            role=role,
            x=LEFT + start * self.scale,
            y=y,
            width=max(1.0, (end - start) * self.scale),
            height=HIGH,
            strong=start <= now < end,
            origin=origin,
        )
