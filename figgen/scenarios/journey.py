"""The job that the journey follows from one GPU to 512: one rung of the ladder for each page."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.level_loads import level_bytes
from figgen.models.step_links import NETWORK, SCALE_UP
from figgen.scenarios.resolve import TrainingStep
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.written import written_step


@dataclass(frozen=True, slots=True)
class Job:
    """A training step in the numbers that the journey's pages speak of; times are predicted.

    Bytes of memory are those of the fullest GPU, bytes sent those of the one that works longest.
    """

    found: TrainingStep
    source = "the step, memory and time models of `figgen step` and `figgen memory`"

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.found.setup.parallel.world_size

    @property
    def microbatches(self) -> int:
        """Microbatches of a replica and step."""
        return self.found.setup.microbatches

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.found.setup.tokens_per_step

    @property
    def predicted(self) -> PredictedStep:
        """The time and its parts."""
        return self.found.predicted

    @property
    def step_time_s(self) -> float:
        """Seconds of a step."""
        return self.predicted.step_time_s

    @property
    def low_s(self) -> float:
        """Below which one run of ten of the class was measured."""
        return self.predicted.low_s

    @property
    def high_s(self) -> float:
        """Above which one run of ten of the class was measured."""
        return self.predicted.high_s

    @property
    def update_s(self) -> float:
        """The optimizer's part of a step."""
        return float(self.predicted.parts.update_s)

    @property
    def idle_share(self) -> float:
        """What filling and draining a pipeline takes of the step."""
        return float(self.predicted.parts.idle_s) / self.step_time_s

    @property
    def tokens_per_second(self) -> float:
        """Throughput of all GPUs."""
        return self.tokens_per_step / self.step_time_s

    @property
    def speed_up(self) -> float:
        """Throughput over that of the journey's first job."""
        return self.tokens_per_second / rung(1).tokens_per_second

    @property
    def trillion_tokens_s(self) -> float:
        """Seconds for a trillion tokens."""
        return 1e12 / self.tokens_per_second

    @property
    def tokens_per_second_and_gpu(self) -> float:
        """Throughput of one GPU."""
        return self.predicted.tokens_per_s_per_gpu

    @property
    def mfu(self) -> float:
        """Share of the dense peak, by 6 operations per parameter and token and all attention."""
        return self.predicted.model_flops_utilisation

    @property
    def total_bytes(self) -> float:
        """Memory that the fullest GPU needs."""
        return self.found.memory.fullest.total_bytes

    @property
    def capacity_bytes(self) -> float:
        """Memory that a GPU has."""
        return float(self.found.memory.capacity_bytes or 0.0)

    @property
    def missing_bytes(self) -> float:
        """What the fullest GPU needs beyond its capacity, negative where it fits."""
        return self.total_bytes - self.capacity_bytes

    @property
    def weights_bytes(self) -> float:
        """Weights on the fullest GPU."""
        return self.found.memory.fullest.bytes_of("weights")

    @property
    def gradients_bytes(self) -> float:
        """Gradients on the fullest GPU."""
        return self.found.memory.fullest.bytes_of("gradients")

    @property
    def optimizer_bytes(self) -> float:
        """Optimizer state on the fullest GPU."""
        return self.found.memory.fullest.bytes_of("optimizer")

    @property
    def state_bytes(self) -> float:
        """Weights, gradients and optimizer state together."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def activations_bytes(self) -> float:
        """What forward keeps for backward on the fullest GPU."""
        return self.found.memory.fullest.bytes_of("activations")

    @property
    def near_bytes(self) -> float:
        """What leaves a GPU over NVLink in a step."""
        return level_bytes(self.found.estimate)[SCALE_UP]

    @property
    def far_bytes(self) -> float:
        """What leaves a GPU over its network adapter in a step."""
        return level_bytes(self.found.estimate)[NETWORK]

    @property
    def sent_bytes(self) -> float:
        """Both together."""
        return self.near_bytes + self.far_bytes


@dataclass(frozen=True, slots=True)
class Rung:
    """What a page of the journey ends with: how the model is laid out, in words and as asked."""

    page: int
    model: str
    layout: str
    sizes: str
    options: str


_NODE, _NODES = "nodes=1 gpus_per_node=8", "nodes=8 gpus_per_node=8"
_PLAIN, _SHARDED = "sequence=8192 zero_stage=0", "sequence=8192 zero_stage=3"
RUNGS: tuple[Rung, ...] = (
    Rung(1, "llama-3-1b", "alone", "nodes=1 gpus_per_node=1", f"{_PLAIN} global_batch=1"),
    Rung(2, "llama-3-1b", "DP 2", "nodes=1 gpus_per_node=2", f"{_PLAIN} global_batch=2"),
    Rung(3, "llama-3-1b", "DP 8", _NODE, f"{_PLAIN} global_batch=64"),
    Rung(4, "llama-3-8b", "FSDP 8", _NODE, f"{_SHARDED} global_batch=64"),
    Rung(5, "llama-3-8b", "FSDP 64", _NODES, f"{_SHARDED} global_batch=512"),
    Rung(6, "llama-3-70b", "TP 8 · FSDP 8", f"{_NODES} tp=8", f"{_SHARDED} global_batch=512"),
    Rung(
        7, "llama-3-70b", "TP 8 · PP 2 · DP 4", f"{_NODES} tp=8 pp=2",
        "sequence=8192 global_batch=512 zero_stage=1",
    ),
    Rung(
        8, "llama-3-70b", "TP 8 · CP 16 · PP 2 · DP 2", "nodes=64 gpus_per_node=8 tp=8 cp=16 pp=2",
        "sequence=131072 global_batch=32 zero_stage=1",
    ),
    Rung(
        9, "deepseek-v3", "EP 8 · PP 16 · DP 32", "nodes=64 gpus_per_node=8 ep=8 pp=16",
        "sequence=4096 global_batch=4096 zero_stage=1 recompute=full",
    ),
    Rung(
        10, "llama-3-70b", "TP 8 · PP 2 · DP 32", "nodes=64 gpus_per_node=8 tp=8 pp=2",
        "sequence=8192 global_batch=512 zero_stage=1 schedule=interleaved-1f1b chunks=5",
    ),
)  # fmt: skip
"""The ladder; batches are in sequences, and from page 5 on those of a large run."""


def job(model: str, sizes: str, options: str = "") -> Job:
    """Any job, written as on pages. Raises InputError as `written_step` does."""
    return Job(written_step(model=model, sizes=sizes, options=options))


def rung(page: int) -> Job:
    """The job at the end of a page. Raises InputError for a page without one."""
    if page not in range(1, len(RUNGS) + 1):
        raise InputError("page of the journey", expected=f"1 to {len(RUNGS)}", got=page)
    found = RUNGS[page - 1]
    return job(found.model, found.sizes, found.options)
