"""A training step as the numbers that the journey's pages quote.

The module is printed as JavaScript, so pages can recompute the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, nan

from figgen.formulas.compute_and_roofline import critical_tokens
from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.machine.cluster import Cluster
from figgen.models.memory.memory import MemoryEstimate
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.transformer import dense_layer_weights, parameter_counts
from figgen.models.step.attained import Attained
from figgen.models.step.compute import training_flops_per_token, utilisation
from figgen.models.step.job import Job
from figgen.models.step.level_loads import level_bytes
from figgen.models.step.other_links import with_links
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.models.step.timed_step import StepSeconds


def tokens_to_hide(
    peak_flops_per_s: float, bandwidth_bytes_per_s: float, bytes_per_param: float
) -> float:
    """Return the tokens per microbatch that hide the messages of full sharding, for any group size.

    For this many tokens, 6 operations per parameter per token take as long as sending the bytes per
    parameter that full sharding requires.
    """
    return float(critical_tokens(peak_flops_per_s, bandwidth_bytes_per_s, bytes_per_param / 3))


SLOWED = 3
"""Factor by which the broken NVLink on the journey's last page is too slow."""

HEALTHY_RING_SHARE = 370 / 450
"""Share of NVLink 4 that a ring of eight GPUs reaches: 370 of 450 GB/s (nccl-tests, issue 212)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyStep:
    """A step in the numbers that pages quote; times are predicted.

    Memory is counted on the fullest GPU, bytes sent on the busiest one.
    """

    setup: TrainingSetup
    cluster: Cluster
    estimate: StepEstimate
    parts: StepSeconds
    memory: MemoryEstimate
    interval_s: tuple[float, float]
    interval_of: str
    memory_rate: float
    job: Job
    attained: Attained
    first_tokens_per_second: float

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.setup.parallel.world_size

    @property
    def microbatches(self) -> int:
        """Microbatches per replica per step."""
        return self.setup.microbatches

    @property
    def replicas(self) -> int:
        """Copies of the model."""
        return self.setup.parallel.dp

    @property
    def tokens_per_microbatch(self) -> int:
        """Tokens per microbatch of a replica."""
        return self.setup.microbatch_size * self.setup.sequence

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.setup.tokens_per_step

    @property
    def step_time_s(self) -> float:
        """Seconds of a step."""
        return float(self.parts.total_s)

    @property
    def low_s(self) -> float:
        """Lower end of the step's interval in seconds; one in ten runs of the class is faster."""
        return self.interval_s[0]

    @property
    def high_s(self) -> float:
        """Upper end of the step's interval in seconds; one in ten runs of the class is slower."""
        return self.interval_s[1]

    @property
    def update_s(self) -> float:
        """Seconds of the optimizer's update."""
        return float(self.parts.update_s)

    @property
    def gradients_s(self) -> float:
        """Seconds by which gradient messages outlast the work that hides them."""
        return float(self.parts.gradients_s)

    @property
    def gradients_share(self) -> float:
        """Share of the step in which gradient messages are exposed."""
        return self.gradients_s / self.step_time_s

    @property
    def straggling_s(self) -> float:
        """Seconds of the step spent waiting for the slowest of all GPUs."""
        return float(self.parts.straggling_s)

    @property
    def straggling_share(self) -> float:
        """Share of the step spent waiting for the slowest of all GPUs."""
        return self.straggling_s / self.step_time_s

    @property
    def head_s(self) -> float:
        """Forward and backward of head and loss on one microbatch, on the last stage alone."""
        return float(self.parts.head_s)

    @property
    def work_s(self) -> float:
        """Forward and backward of all microbatches, including exposed messages within layers."""
        return float(self.parts.work_s)

    @property
    def backward_s(self) -> float:
        """Backward of all microbatches, two thirds of the work."""
        return self.work_s * 2 / 3

    @property
    def exposed_s(self) -> float:
        """Seconds of messages that nothing hides, including those within layers."""
        return float(self.estimate.exposed_s)

    @property
    def tensor_hidden_share(self) -> float:
        """Share of the time of tensor-parallel messages that work hides, 0 to 1; 0 without TP."""
        rows = [row for row in self.estimate.rows if row.axis == "tp"]
        sent_s = fsum(row.time_s for row in rows)
        return 1 - fsum(row.exposed_s for row in rows) / sent_s if sent_s > 0 else 0.0

    @property
    def computing_s(self) -> float:
        """Forward and backward of all microbatches without the messages within layers."""
        parts = self.parts
        between_s = float(parts.stage_messages_s + parts.gradients_s + parts.sharding_s)
        return self.work_s + between_s - self.exposed_s

    @property
    def fixed_s(self) -> float:
        """Fixed cost of a step in seconds: data loader, training loop, logging."""
        return float(self.parts.fixed_s)

    @property
    def paid_once_share(self) -> float:
        """Share of update, exposed gradients and fixed cost, which each step pays for once."""
        return (self.update_s + self.gradients_s + self.fixed_s) / self.step_time_s

    @property
    def layer_s(self) -> float:
        """Forward and backward of one layer on one microbatch."""
        return float(self.parts.dense.total_s)

    @property
    def layer_sharded_bytes(self) -> float:
        """Bytes that full sharding moves for one dense layer and microbatch; 0 for experts."""
        if self.setup.shape.experts is not None:
            return nan
        return dense_layer_weights(self.setup.shape) * self.sharded_bytes_per_param

    @property
    def at_peak_s(self) -> float:
        """Seconds that the operations of MFU would take at the dense peak: MFU times the step."""
        return self.mfu * self.step_time_s

    @property
    def sharded_bytes_per_param(self) -> float:
        """Bytes that ZeRO-3 moves per parameter per microbatch: two gathers and one scatter."""
        recipe = self.setup.recipe
        return 2 * recipe.weight_bytes + recipe.gradient_bytes

    @property
    def tokens_to_hide(self) -> float:
        """Tokens per microbatch and replica that hide its sharded messages, at the dense peak."""
        rate = self.sharded_bandwidth_bytes_per_s
        return tokens_to_hide(self.peak_flops_per_s, rate, self.sharded_bytes_per_param)

    @property
    def tokens_to_hide_alone(self) -> float:
        """Tokens per microbatch and replica that hide its messages, with one adapter per GPU."""
        rate = self.network_bytes_per_s
        return tokens_to_hide(self.peak_flops_per_s, rate, self.sharded_bytes_per_param)

    @property
    def sharded_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth of each GPU in a sharding group whose members share their node's adapters."""
        cluster, link = self.cluster, group_link(self.setup.parallel, "dp")
        fast, slow = cluster.scale_up_bandwidth_bytes_per_s, cluster.network_bandwidth_bytes_per_s
        if link.level != NETWORK:
            return float(fast)
        return float(group_bandwidth_bytes_per_s(fast, slow, link.members_per_node))

    @property
    def peak_flops_per_s(self) -> float:
        """The dense peak of a GPU, by its datasheet."""
        return float(self.cluster.peak_flops_per_s)

    @property
    def idle_share(self) -> float:
        """Share of the step in which the pipeline fills and drains."""
        return float(self.parts.idle_s) / self.step_time_s

    @property
    def experts(self) -> int:
        """Experts in each layer that has them; 0 in a dense model."""
        return 0 if self.setup.shape.experts is None else self.setup.shape.experts.count

    @property
    def expert_memory_s(self) -> float:
        """Seconds of memory traffic of a layer of experts, forward and backward of a microbatch."""
        return float(self.parts.expert.memory_s)

    @property
    def expert_messages_s(self) -> float:
        """Wait of a layer of experts for messages, except those of a recomputed forward."""
        return float(self.parts.expert.messages_s)

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of all GPUs."""
        return self.tokens_per_step / self.step_time_s

    @property
    def trillion_tokens_s(self) -> float:
        """Seconds for a trillion tokens."""
        return 1e12 / self.tokens_per_second

    @property
    def tokens_per_second_and_gpu(self) -> float:
        """Tokens per second of one GPU."""
        return self.tokens_per_second / self.gpus

    @property
    def mfu(self) -> float:
        """Share of the dense peak, by 6 operations per parameter per token and all attention."""
        return self.estimate.model_flops_utilisation

    @property
    def mfu_causal(self) -> float:
        """Share of the dense peak without the masked half of attention, which kernels skip."""
        return utilisation(
            self.setup.shape,
            "causal",
            tokens_per_s_per_gpu=self.tokens_per_second_and_gpu,
            peak_flops_per_s=self.cluster.peak_flops_per_s,
            sequence=self.setup.sequence,
        )

    @property
    def attention_gflops(self) -> float:
        """Operations of the attention core per token, without its masked half, in 1e9."""
        shape, sequence = self.setup.shape, self.setup.sequence
        whole = training_flops_per_token(shape, sequence=sequence)
        return (whole - training_flops_per_token(shape, "causal", sequence=sequence)) / 1e9

    @property
    def attention_at_peak_s(self) -> float:
        """Seconds per step of the attention core on a GPU, at the dense peak."""
        flops = self.attention_gflops * 1e9 * self.tokens_per_step / self.gpus
        return flops / self.cluster.peak_flops_per_s

    @property
    def matmuls_gflops(self) -> float:
        """Operations per token of all matmuls with weights, in 1e9."""
        shape, sequence = self.setup.shape, self.setup.sequence
        causal = training_flops_per_token(shape, "causal", sequence=sequence)
        return causal / 1e9 - self.attention_gflops

    @property
    def total_bytes(self) -> float:
        """Memory that the fullest GPU needs."""
        return self.memory.fullest.total_bytes

    @property
    def capacity_bytes(self) -> float:
        """Memory that a GPU has."""
        return float(self.memory.capacity_bytes or 0.0)

    @property
    def fit_chance(self) -> float:
        """The chance that the fullest GPU's memory is enough, 0 to 1."""
        return float(self.memory.fit_probability or 0.0)

    @property
    def missing_bytes(self) -> float:
        """Bytes that the fullest GPU needs beyond its capacity; negative if it fits."""
        return self.total_bytes - self.capacity_bytes

    @property
    def weights_bytes(self) -> float:
        """Weights on the fullest GPU."""
        return self.memory.fullest.bytes_of("weights")

    @property
    def gradients_bytes(self) -> float:
        """Gradients on the fullest GPU."""
        return self.memory.fullest.bytes_of("gradients")

    @property
    def optimizer_bytes(self) -> float:
        """Optimizer state on the fullest GPU."""
        return self.memory.fullest.bytes_of("optimizer")

    @property
    def state_bytes(self) -> float:
        """Bytes of weights, gradients and optimizer state together."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def activations_bytes(self) -> float:
        """Activations kept for backward on the fullest GPU."""
        return self.memory.fullest.bytes_of("activations")

    @property
    def working_bytes(self) -> float:
        """Copies of the logits in the loss, or temporaries of one layer, on the fullest GPU."""
        return self.memory.fullest.bytes_of("working")

    @property
    def buffers_bytes(self) -> float:
        """Communication buffers on the fullest GPU: gathered weights, gradients being reduced."""
        return self.memory.fullest.bytes_of("communication")

    @property
    def reserve_bytes(self) -> float:
        """Memory that the allocator, CUDA and NCCL hold beyond the tensors, on the fullest GPU."""
        return self.memory.fullest.bytes_of("reserve")

    @property
    def rest_bytes(self) -> float:
        """Buffers, the allocator's overhead and the driver's memory, on the fullest GPU."""
        return self.total_bytes - self.state_bytes - self.activations_bytes

    @property
    def near_bytes(self) -> float:
        """Bytes that a GPU sends over NVLink in a step."""
        return level_bytes(self.estimate)[SCALE_UP]

    @property
    def far_bytes(self) -> float:
        """Bytes that a GPU sends over its network adapter in a step."""
        return level_bytes(self.estimate)[NETWORK]

    @property
    def far_s(self) -> float:
        """Seconds that the adapter needs for a step's bytes, without latency."""
        return self.far_bytes / self.cluster.network_bandwidth_bytes_per_s

    @property
    def network_bytes_per_s(self) -> float:
        """A GPU's share of the bandwidth of its node's adapters, from their datasheet."""
        return float(self.cluster.network_bandwidth_bytes_per_s)

    @property
    def scale_up_bytes_per_s(self) -> float:
        """Bandwidth from a GPU to the others of its node."""
        return float(self.cluster.scale_up_bandwidth_bytes_per_s)

    @property
    def node_network_bytes_per_s(self) -> float:
        """Bandwidth of all adapters of a node together."""
        return self.network_bytes_per_s * self.gpus_per_node

    @property
    def gpus_per_node(self) -> int:
        """GPUs of the job on each node."""
        return self.setup.parallel.gpus_per_node

    @property
    def nodes(self) -> int:
        """Nodes of the job."""
        return self.gpus // self.gpus_per_node

    @property
    def network_latency_s(self) -> float:
        """Seconds that any message between nodes takes, however small."""
        return float(self.cluster.network_latency_s)

    @property
    def scale_up_latency_s(self) -> float:
        """Seconds that any message inside a node takes, however small."""
        return float(self.cluster.scale_up_latency_s)

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return parameter_counts(self.setup.shape).total

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self.setup.shape.layers

    @property
    def hidden(self) -> int:
        """Elements of the vector that represents a token between layers."""
        return self.setup.shape.hidden

    @property
    def sequence(self) -> int:
        """Tokens of a sequence."""
        return self.setup.sequence

    @property
    def zero_stage(self) -> int:
        """ZeRO stage: 0 shards nothing, 3 everything."""
        return self.setup.zero_stage

    @property
    def slowed(self) -> StepEstimate:
        """The step while NVLink runs at 1/`SLOWED` of its bandwidth."""
        return with_links(self.setup, self.cluster, self.job, self.attained, scale_up=1 / SLOWED)

    @property
    def slowed_gather_s(self) -> float:
        """Seconds of one tensor-parallel all-gather in the slowed step; 0 without TP."""
        hops_s = (self.tensor_ranks - 1) * self.cluster.scale_up_latency_s
        return float(self.slowed_sent_bytes / (self.healthy_ring_bytes_per_s / SLOWED) + hops_s)

    @property
    def slowed_gather_bytes(self) -> float:
        """Bytes that each rank holds after a tensor-parallel all-gather; 0 without TP."""
        for row in self.slowed.rows:
            if row.axis == "tp":
                return float(row.call_bytes * row.size / (row.size - 1))
        return nan

    @property
    def slowed_gather_bytes_per_s(self) -> float:
        """Bus bandwidth of one tensor-parallel all-gather in the slowed step."""
        return self.slowed_sent_bytes / self.slowed_gather_s

    @property
    def slowed_sent_bytes(self) -> float:
        """Bytes that each rank sends in one tensor-parallel all-gather."""
        return self.slowed_gather_bytes * (self.tensor_ranks - 1) / self.tensor_ranks

    @property
    def healthy_ring_bytes_per_s(self) -> float:
        """Bandwidth of a ring over the links inside a healthy node."""
        return HEALTHY_RING_SHARE * float(self.cluster.scale_up_bandwidth_bytes_per_s)

    @property
    def stages(self) -> int:
        """Pipeline ranks of a replica."""
        return self.setup.parallel.pp

    @property
    def microbatch_size(self) -> int:
        """Sequences of a microbatch."""
        return self.setup.microbatch_size

    @property
    def tensor_ranks(self) -> int:
        """GPUs that share each layer."""
        return self.setup.parallel.tp

    @property
    def slowed_s(self) -> float:
        """Seconds of the slowed step."""
        return self.slowed.step_time_s

    @property
    def speed_up(self) -> float:
        """Throughput relative to the journey's first job."""
        return self.tokens_per_second / self.first_tokens_per_second
