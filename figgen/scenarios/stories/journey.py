"""The job that the journey follows from one GPU to 512: one rung of the ladder for each page."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.formulas.compute_and_roofline import critical_tokens
from figgen.lookups import Opened
from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.shape.transformer import dense_layer_weights
from figgen.models.step.compute import training_flops_per_token, utilisation
from figgen.models.step.level_loads import level_bytes
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_step
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.stories.opened import opened

SLOWED = 3
"""The journey's last page: how many times less than it should a broken NVLink carries."""

HEALTHY_RING_BYTES_PER_S = 370e9
"""What a ring makes of eight GPUs' NVLink 4 (nccl-tests, issue 212): a profile shows no more."""


def tokens_to_hide(
    peak_flops_per_s: float, bandwidth_bytes_per_s: float, bytes_per_param: float
) -> float:
    """Tokens of a microbatch at which 6 operations per parameter and token take as long as the
    bytes that full sharding moves per parameter, in a group of any size.
    """
    return float(critical_tokens(peak_flops_per_s, bandwidth_bytes_per_s, bytes_per_param / 3))


@dataclass(frozen=True, slots=True)
class JourneyJob:
    """A training step in the numbers that the journey's pages quote; times are predicted.

    Memory is counted on the fullest GPU, bytes sent on the busiest one.
    """

    found: TrainingStep
    source = "our models of a step and its memory, which figgen step and figgen memory print"

    def opened(self, field: str) -> Opened:
        """What a field opens to on a page: its formula, the substitution and its parts."""
        return opened(self, field)

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.found.setup.parallel.world_size

    @property
    def microbatches(self) -> int:
        """Microbatches of a replica and step."""
        return self.found.setup.microbatches

    @property
    def replicas(self) -> int:
        """Replicas of the model."""
        return self.found.setup.parallel.dp

    @property
    def tokens_per_microbatch(self) -> int:
        """Tokens of a replica's microbatch."""
        return self.found.setup.microbatch_size * self.found.setup.sequence

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
        return self.found.interval_s[0]

    @property
    def high_s(self) -> float:
        """Above which one run of ten of the class was measured."""
        return self.found.interval_s[1]

    @property
    def update_s(self) -> float:
        """The optimizer's part of a step."""
        return float(self.predicted.parts.update_s)

    @property
    def gradients_s(self) -> float:
        """What of the gradients' messages outlasts the work that hides them."""
        return float(self.predicted.parts.gradients_s)

    @property
    def gradients_share(self) -> float:
        """Those messages over the step."""
        return self.gradients_s / self.step_time_s

    @property
    def straggling_share(self) -> float:
        """What waiting for the slowest of all GPUs takes of the step."""
        return float(self.predicted.parts.straggling_s) / self.step_time_s

    @property
    def head_s(self) -> float:
        """Forward and backward of head and loss on one microbatch: the last stage's alone."""
        return float(self.predicted.parts.head_s)

    @property
    def work_s(self) -> float:
        """Forward and backward of all microbatches, with what messages within layers expose."""
        return float(self.predicted.parts.work_s)

    @property
    def backward_s(self) -> float:
        """Backward of all microbatches, two operations of three of the work."""
        return self.work_s * 2 / 3

    @property
    def exposed_s(self) -> float:
        """Messages that nothing hides, those within layers included."""
        return float(self.found.estimate.exposed_s)

    @property
    def computing_s(self) -> float:
        """Forward and backward of all microbatches without the messages within layers."""
        parts = self.predicted.parts
        between_s = float(parts.stage_messages_s + parts.gradients_s + parts.sharding_s)
        return self.work_s + between_s - self.exposed_s

    @property
    def fixed_s(self) -> float:
        """What a step costs whatever it does: the loader, the loop, the log."""
        return float(self.predicted.parts.fixed_s)

    @property
    def paid_once_share(self) -> float:
        """Update, visible gradients and fixed cost over the step: what microbatches share."""
        return (self.update_s + self.gradients_s + self.fixed_s) / self.step_time_s

    @property
    def layer_s(self) -> float:
        """Forward and backward of one layer on one microbatch."""
        return float(self.predicted.parts.dense.total_s)

    @property
    def layer_sharded_bytes(self) -> float:
        """What full sharding gathers and scatters for one dense layer and microbatch."""
        return dense_layer_weights(self.found.model.shape) * self.sharded_bytes_per_param

    @property
    def at_peak_s(self) -> float:
        """Seconds that the counted operations would take at the dense peak: MFU of the step."""
        return self.mfu * self.step_time_s

    @property
    def sharded_bytes_per_param(self) -> float:
        """Bytes that ZeRO-3 moves per parameter and microbatch: two gathers, one scatter."""
        recipe = self.found.setup.recipe
        return 2 * recipe.weight_bytes + recipe.gradient_bytes

    @property
    def tokens_to_hide(self) -> float:
        """Tokens of a microbatch and copy from which its sharded messages hide, at the peak."""
        rate = self.sharded_bandwidth_bytes_per_s
        return tokens_to_hide(self.peak_flops_per_s, rate, self.sharded_bytes_per_param)

    @property
    def sharded_bandwidth_bytes_per_s(self) -> float:
        """What the links give each GPU of a sharding group, which shares its node's adapters."""
        cluster, link = self.found.cluster, group_link(self.found.setup.parallel, "dp")
        fast, slow = cluster.scale_up_bandwidth_bytes_per_s, cluster.network_bandwidth_bytes_per_s
        if link.level != NETWORK:
            return float(fast)
        return float(group_bandwidth_bytes_per_s(fast, slow, link.members_per_node))

    @property
    def peak_flops_per_s(self) -> float:
        """The dense peak of a GPU."""
        return float(self.found.cluster.peak_flops_per_s)

    @property
    def slowed(self) -> StepEstimate:
        """The step while NVLink of one GPU of a node makes 1/`SLOWED` of what it should."""
        return self.found.with_links(scale_up=1 / SLOWED)

    @property
    def slowed_gather_s(self) -> float:
        """Seconds of one all-gather of tensor parallelism in that step."""
        row = next(row for row in self.slowed.rows if row.axis == "tp")
        hops_s = (row.size - 1) * self.found.cluster.scale_up_latency_s
        return float(row.call_bytes / (HEALTHY_RING_BYTES_PER_S / SLOWED) + hops_s)

    @property
    def slowed_s(self) -> float:
        """Seconds of that step."""
        return self.slowed.step_time_s

    @property
    def idle_share(self) -> float:
        """What filling and draining a pipeline takes of the step."""
        return float(self.predicted.parts.idle_s) / self.step_time_s

    @property
    def expert_memory_s(self) -> float:
        """What a layer of experts moves in its own memory, forward and backward of a microbatch."""
        return float(self.predicted.parts.expert.memory_s)

    @property
    def expert_messages_s(self) -> float:
        """What such a layer waits for messages, those of a repeated forward left out."""
        return float(self.predicted.parts.expert.messages_s)

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
        return self.tokens_per_second / self.gpus

    @property
    def mfu(self) -> float:
        """Share of the dense peak, by 6 operations per parameter and token and all attention."""
        return self.found.estimate.model_flops_utilisation

    @property
    def mfu_causal(self) -> float:
        """The same with the masked half of attention left out, which kernels skip."""
        return utilisation(
            self.found.model.shape,
            "causal",
            tokens_per_s_per_gpu=self.tokens_per_second_and_gpu,
            peak_flops_per_s=self.found.cluster.peak_flops_per_s,
            sequence=self.found.setup.sequence,
        )

    @property
    def attention_gflops(self) -> float:
        """Operations of the attention core for a token, its masked half left out, in 1e9."""
        shape, sequence = self.found.model.shape, self.found.setup.sequence
        whole = training_flops_per_token(shape, sequence=sequence)
        return (whole - training_flops_per_token(shape, "causal", sequence=sequence)) / 1e9

    @property
    def attention_at_peak_s(self) -> float:
        """Seconds of the attention core on a GPU in a step, at the dense peak."""
        flops = self.attention_gflops * 1e9 * self.tokens_per_step / self.gpus
        return flops / self.found.cluster.peak_flops_per_s

    @property
    def products_gflops(self) -> float:
        """Operations of all products with weights for a token, in 1e9."""
        shape, sequence = self.found.model.shape, self.found.setup.sequence
        causal = training_flops_per_token(shape, "causal", sequence=sequence)
        return causal / 1e9 - self.attention_gflops

    @property
    def total_bytes(self) -> float:
        """Memory that the fullest GPU needs."""
        return self.found.memory.fullest.total_bytes

    @property
    def capacity_bytes(self) -> float:
        """Memory that a GPU has."""
        return float(self.found.memory.capacity_bytes or 0.0)

    @property
    def fit_chance(self) -> float:
        """The chance that the fullest GPU's memory is enough, 0 to 1."""
        return float(self.found.memory.fit_probability or 0.0)

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
    def rest_bytes(self) -> float:
        """Buffers, the allocator's loss and what the driver takes, on the fullest GPU."""
        return self.total_bytes - self.state_bytes - self.activations_bytes

    @property
    def near_bytes(self) -> float:
        """What leaves a GPU over NVLink in a step."""
        return level_bytes(self.found.estimate)[SCALE_UP]

    @property
    def far_bytes(self) -> float:
        """What leaves a GPU over its network adapter in a step."""
        return level_bytes(self.found.estimate)[NETWORK]

    @property
    def far_s(self) -> float:
        """Seconds that the adapter needs for them, latency left out."""
        return self.far_bytes / self.found.cluster.network_bandwidth_bytes_per_s


def job(model: str, sizes: str, options: str = "") -> JourneyJob:
    """Any job, written as on pages. Raises InputError as `written_step` does."""
    return JourneyJob(written_step(model=model, sizes=sizes, options=options))


def rung(page: int) -> JourneyJob:
    """The job at the end of a page. Raises InputError for a page without one."""
    if page not in range(1, len(RUNGS) + 1):
        raise InputError("page of the journey", expected=f"1 to {len(RUNGS)}", got=page)
    found = RUNGS[page - 1]
    return job(found.model, found.sizes, found.options)
