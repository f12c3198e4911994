"""Which rank of a pipeline holds which virtual stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.errors import InputError


@dataclass(frozen=True, slots=True)
class Placement:
    """The rank that holds each virtual stage: `rank_of_stage[stage]`.

    `pipes` counts independent pipelines (copies of the model), each a run of consecutive stages; it
    is 1 except for DualPipe, whose second copy runs the other way. Raises InputError unless every
    rank holds the same number of stages.
    """

    name: str
    rank_of_stage: tuple[int, ...]
    pipes: int = 1
    ranks: int = field(init=False)
    held: tuple[tuple[int, ...], ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        held: list[list[int]] = [[] for _ in range(max(self.rank_of_stage) + 1)]
        for stage, rank in enumerate(self.rank_of_stage):
            held[rank].append(stage)
        counts = list(map(len, held))
        if len(set(counts)) != 1:
            raise InputError(
                "uneven placement", expected="equally many stages on each rank", got=counts
            )
        if len(self.rank_of_stage) % self.pipes:
            raise InputError(
                "stages do not divide into pipes", expected=f"a multiple of {self.pipes}"
            )
        object.__setattr__(self, "ranks", len(held))
        object.__setattr__(self, "held", tuple(map(tuple, held)))

    @property
    def stages(self) -> int:
        """Number of virtual stages in all pipes."""
        return len(self.rank_of_stage)

    @property
    def depth(self) -> int:
        """Number of stages that a microbatch passes through."""
        return self.stages // self.pipes

    @property
    def chunks(self) -> int:
        """V: the number of stages that one P-th of the model is cut into."""
        return self.depth // self.ranks

    def is_first(self, stage: int) -> bool:
        """Whether `stage` begins its pipe, so that its forward waits for no other stage."""
        return stage % self.depth == 0

    def is_last(self, stage: int) -> bool:
        """Whether `stage` ends its pipe, so that its backward waits only for its own forward."""
        return stage % self.depth == self.depth - 1

    def stages_of_rank(self, rank: int) -> tuple[int, ...]:
        """Return the virtual stages of `rank`, ascending."""
        return self.held[rank]

    def beside(self, stage: int) -> int:
        """Return the other of the two stages of its rank, or `stage` itself if it is alone."""
        held = self.held[self.rank_of_stage[stage]]
        return held[0] if stage == held[-1] else held[-1]


def contiguous(ranks: int) -> Placement:
    """Return a placement of one stage per rank, in rank order."""
    return Placement("contiguous", tuple(range(ranks)))


def looping(ranks: int, chunks: int) -> Placement:
    """Return a placement of stage `chunk * ranks + rank` on `rank`, looping `chunks` times.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2.
    """
    return Placement("looping", tuple(range(ranks)) * chunks)


def v_shape(ranks: int) -> Placement:
    """Return a placement of two chunks per rank, down and back up: rank r holds r and 2P−1−r.

    Source: Qi et al. 2024, arXiv:2405.15362.
    """
    return Placement("v-shape", (*range(ranks), *reversed(range(ranks))))


def bidirectional(ranks: int) -> Placement:
    """Return a placement of two copies of the model in opposite directions.

    Rank r holds stage r of one pipe and stage P−1−r of the other, numbered 2P−1−r here.
    Source: DeepSeek-V3 technical report, arXiv:2412.19437, section 3.2.1.
    """
    return Placement("bidirectional", (*range(ranks), *reversed(range(ranks))), pipes=2)
