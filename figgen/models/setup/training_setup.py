"""The configuration of a training step: model, layout, batch, schedule, sharding, recomputation.

`figgen.models.memory.memory` computes its memory on each GPU, `figgen.models.step.step` its traffic
and its time. Gradients of activations have 16 bits, and so have activations unless configured
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, check_size, unknown
from figgen.models.machine.layout import ParallelLayout
from figgen.models.pipeline.schedules import Schedule, build, build_short, peak_in_flight
from figgen.models.pipeline.stage_placement import Placement
from figgen.models.setup.framework_memory import FrameworkMemory, framework_memory
from figgen.models.shape.activation_formats import ActivationFormat, activation_format
from figgen.models.shape.adapters import ADAPTED, NOT_ADAPTED, FrozenFormat, frozen_format
from figgen.models.shape.documents import check_documents
from figgen.models.shape.model_shape import ModelShape, StateSpace
from figgen.models.shape.recipes import RECIPES, Recipe
from figgen.models.shape.recomputation import Recomputation, recomputation

ACTIVATION_BYTES = 2
ZERO_STAGES = (0, 1, 2, 3)
CONTEXT_EXCHANGES = ("p2p", "all-gather", "all-to-all", "a2a+p2p")
DISPATCHERS: dict[str, int] = {"usual": 0, "all-to-all": 1, "deepep": 2, "hybridep": 3}
"""Ways to send tokens to their experts, each with its number in `Job`."""

EXPERT_OVERLAPS: dict[str, int] = {"usual": 0, "off": 1, "on": 2}
"""Whether tokens travel to experts while another microbatch computes, with numbers in `Job`."""

CUDA_GRAPHS: dict[str, int] = {"usual": 0, "none": 1, "layers": 2, "step": 3}
"""What CUDA graphs capture, with numbers in `Job`: nothing, the parts of a layer that need no
counts of tokens (attention, router), or the whole step."""

MOST_MTP_LAYERS = 16

MOST_SKEW = 1024
"""The largest ratio to the mean; a larger one is a typo."""

MOST_BUCKETS = 2**20
"""Most messages into which gradients may be split; a larger number is a typo."""

MOST_TOKENS = 2**40
"""Most tokens of a microbatch; a larger number is a typo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """The settings that determine memory and traffic of a step, apart from the hardware.

    Batch: `microbatches` per replica per step, each of `microbatch_size` sequences of `sequence`
    tokens. `document_tokens` are the lengths, or the mean length, of documents packed into a
    sequence, each of which attends only to itself; without them the whole sequence is one document.

    Schedule and stages: `schedule` and `chunks` are those of
    `figgen.models.pipeline.schedules.build`. `layers_per_stage` has the layers of each virtual
    stage in the order of a microbatch (0 is allowed); if it is empty, layers are spread evenly.
    `mtp_layers` modules of multi-token prediction follow the last layer, on the stage of the head.

    State: `zero_stage` 1 is Megatron's distributed optimizer, 3 is FSDP. `buckets` is the number of
    messages for gradients and gathered weights; by default there is one per layer, and one each for
    embedding and head. `overlap_data_parallel` runs them behind computation; without
    `overlap_weights`, the first forward waits for weights that are gathered once per step.
    `framework` names the software whose memory habits apply, see
    `figgen.models.setup.framework_memory`.

    Activations: `recompute` keeps all activations ("none"), all but the attention core
    ("selective"), only the input of each layer ("full"), or what else
    `figgen.models.shape.recomputation` supports; `activations` names their format.
    `flash_attention` never stores the core and skips its masked half. `dropout` adds the masks that
    older models keep.

    Context parallelism: `context_exchange` names how queries and keys are brought together;
    "a2a+p2p" is by heads inside a node and in a ring between nodes. With `zigzag` every rank has
    the same causal work, without it the last has the most. `double_buffering` adds a second buffer
    for the next block of keys and values of a ring, and for the next layer's weights under ZeRO-3;
    without it both wait until the first buffer is free.

    Experts: `dispatcher` sends every copy of a token, or (DeepEP, HybridEP) each token once per
    rank or node. With `expert_overlap` tokens travel while another microbatch computes.
    `cuda_graphs` says what the host launches in one call. "usual" means the default of the
    software's release. The fullest expert-parallel rank gets `expert_skew` times the mean number of
    tokens.

    Offloading: `offloaded_optimizer` is the share of the optimizer state in the host's memory,
    which its processor updates. `offloaded_activations` is the share of what layers keep that goes
    to the host in forward and returns in backward. With `offload_overlap` copies run behind the
    update or the computation.

    Adapters: with a `lora_rank` everything is frozen except adapters of that rank at the
    `lora_matrices`; `frozen_weights` is the format of the layers' matrices, see
    `figgen.models.shape.adapters`. The recipe is then that of the adapters.

    Raises InputError for sizes that do not divide and for combinations without an implementation.
    """

    shape: ModelShape
    parallel: ParallelLayout
    microbatches: int
    sequence: int
    microbatch_size: int = 1
    document_tokens: tuple[int, ...] = ()
    schedule: str = "1f1b"
    chunks: int | None = None
    recipe: Recipe = RECIPES["mcore18"]
    zero_stage: int = 1
    recompute: str = "none"
    activations: str = "16-bit"
    sequence_parallel: bool = True
    flash_attention: bool = True
    dropout: bool = False
    context_exchange: str = "p2p"
    zigzag: bool = True
    dispatcher: str = "usual"
    expert_overlap: str = "usual"
    cuda_graphs: str = "usual"
    expert_skew: float = 1.0
    buckets: int | None = None
    overlap_data_parallel: bool = True
    overlap_weights: bool = True
    double_buffering: bool = True
    layers_per_stage: tuple[int, ...] = ()
    mtp_layers: int = 0
    offloaded_optimizer: float = 0.0
    offloaded_activations: float = 0.0
    offload_overlap: bool = True
    framework: str = "megatron"
    lora_rank: int | None = None
    lora_matrices: str = "all-linear"
    frozen_weights: str = "16-bit"

    def __post_init__(self) -> None:
        for name in ("microbatches", "sequence", "microbatch_size"):
            check_size(name, getattr(self, name))
        if self.sequence * self.microbatch_size > MOST_TOKENS:
            got = self.sequence * self.microbatch_size
            raise InputError(
                "tokens of a microbatch",
                expected=f"at most {MOST_TOKENS:,}",
                got=got,
                key="sequence",
            )
        if self.buckets is not None and check_size("buckets", self.buckets) > MOST_BUCKETS:
            raise InputError("buckets", expected=f"at most {MOST_BUCKETS:,}", got=self.buckets)
        for name, known in (
            ("zero_stage", ZERO_STAGES),
            ("context_exchange", CONTEXT_EXCHANGES),
            ("dispatcher", tuple(DISPATCHERS)),
            ("expert_overlap", tuple(EXPERT_OVERLAPS)),
            ("cuda_graphs", tuple(CUDA_GRAPHS)),
        ):
            if getattr(self, name) not in known:
                expected = " or ".join(map(str, known))
                raise InputError(name, expected=expected, got=getattr(self, name))
        if not 0 <= self.mtp_layers <= MOST_MTP_LAYERS:
            raise InputError("mtp_layers", expected=f"0 to {MOST_MTP_LAYERS}", got=self.mtp_layers)
        for share in ("offloaded_optimizer", "offloaded_activations"):
            if not 0 <= getattr(self, share) <= 1:
                raise InputError(share, expected="0 to 1", got=getattr(self, share))
        if self.offloaded_activations and self.cuda_graphs == "step":
            expected = "none or layers with offloaded_activations"
            raise InputError("cuda_graphs", expected=expected, got="step", key="cuda_graphs")
        if not 1 <= self.expert_skew <= MOST_SKEW:
            expected = f"1 (even routing) to {MOST_SKEW}"
            raise InputError("expert_skew", expected=expected, got=self.expert_skew)
        check_documents(self.document_tokens, self.sequence)
        recomputation(self.recompute)
        activation_format(self.activations)
        framework_memory(self.framework)
        _check_adapters(self)
        _check_division(self)
        _check_stages(self)

    @property
    def order(self) -> Schedule:
        """The order of actions on every pipeline rank."""
        return build(
            self.schedule,
            stages=self.parallel.pp,
            microbatches=self.microbatches,
            chunks=self.chunks,
        )

    @property
    def short_order(self) -> Schedule:
        """Return an order of fewer microbatches with equal placement and activations."""
        return build_short(
            self.schedule,
            stages=self.parallel.pp,
            microbatches=self.microbatches,
            chunks=self.chunks,
        )

    @property
    def placement(self) -> Placement:
        """The pipeline rank of every virtual stage."""
        return self.short_order.placement

    @property
    def microbatches_of_stage(self) -> int:
        """Microbatches that pass each virtual stage: all, or those of its pipe."""
        return self.microbatches // self.placement.pipes

    @property
    def overlaps(self) -> bool:
        """Whether forwards run at the same time as backwards, as in DualPipe."""
        return bool(self.short_order.overlapped)

    @property
    def in_flight(self) -> tuple[float, ...]:
        """Most microbatches whose activations each pipeline rank holds."""
        return peak_in_flight(self.short_order)

    @property
    def recomputation(self) -> Recomputation:
        """Return the modules or layers that run forward twice."""
        return recomputation(self.recompute)

    @property
    def activation_format(self) -> ActivationFormat:
        """The bytes of each activation."""
        return activation_format(self.activations)

    @property
    def frozen_format(self) -> FrozenFormat:
        """The format in which frozen matrices are kept."""
        return frozen_format(self.frozen_weights)

    @property
    def framework_memory(self) -> FrameworkMemory:
        """Return how the framework uses memory beyond what the job needs."""
        return framework_memory(self.framework)

    @property
    def optimizer_bytes(self) -> float:
        """Bytes of optimizer state per parameter in the GPU's memory."""
        whole = self.recipe.optimizer_bytes
        leaves = max(0.0, whole - self.framework_memory.offload_keeps_bytes)
        return whole - self.offloaded_optimizer * leaves

    @property
    def table_bytes(self) -> float:
        """Additional bytes of optimizer state per parameter of the embedding or head."""
        return (1 - self.offloaded_optimizer) * self.recipe.table_bytes

    @property
    def tokens(self) -> int:
        """Tokens of a microbatch that one context-parallel rank holds."""
        return self.microbatch_size * self.sequence // self.parallel.cp

    @property
    def split_tokens(self) -> int:
        """Tokens for which a rank holds what sequence parallelism splits: norms, routing."""
        return self.tokens // self.parallel.tp if self.sequence_parallel else self.tokens

    @property
    def global_batch(self) -> int:
        """Sequences of all replicas in a step."""
        return self.microbatches * self.microbatch_size * self.parallel.dp

    @property
    def tokens_per_step(self) -> int:
        """Tokens of all replicas in a step."""
        return self.global_batch * self.sequence

    @property
    def dense_data_axis(self) -> str:
        """The communicator that reduces gradients of all but routed experts."""
        return "dp-cp" if self.parallel.cp > 1 else "dp"

    @property
    def dense_shards(self) -> int:
        """Ranks over which ZeRO divides the state of all but routed experts."""
        return self.parallel.dp * self.parallel.cp

    @property
    def gathers(self) -> int:
        """Number of times that ZeRO gathers the weights in every microbatch."""
        return sharding_of(self, self.zero_stage, self.parallel.pp)[0]

    @property
    def scatters(self) -> int:
        """Number of times that ZeRO scatters the gradients in every microbatch."""
        return sharding_of(self, self.zero_stage, self.parallel.pp)[1]

    @property
    def trades_heads(self) -> bool:
        """Return whether each context rank attends to the whole sequence with some of the heads."""
        return self.context_exchange == "all-to-all"

    @property
    def traded_ranks(self) -> int:
        """Context ranks that trade tokens for heads with each other: all, those of a node, or 1."""
        if self.context_exchange == "a2a+p2p":
            return self.parallel.context_in_node
        return self.parallel.cp if self.trades_heads else 1

    @property
    def sends_once(self) -> bool:
        """Whether a token goes once to a rank or a node that has several of its experts."""
        return DISPATCHERS[self.dispatcher] >= DISPATCHERS["deepep"]

    @property
    def fullest_experts(self) -> float:
        """Tokens of the fullest expert-parallel rank over the mean; at most it gets all of them."""
        return min(self.expert_skew, self.parallel.ep)

    @property
    def core_imbalance(self) -> float:
        """Causal work of the context rank with the most work, over the mean.

        If the sequence is cut in order, the last of C ranks attends to all other chunks and half of
        its own. Ranks that trade heads have equal work.
        """
        chunks = self.parallel.cp // self.traded_ranks
        return 1.0 if self.zigzag else (2 * chunks - 1) / chunks

    @property
    def kv_heads_per_rank(self) -> int:
        """Key-value heads per tensor-parallel rank; ranks share a head if there are too few."""
        return max(1, self.shape.kv_heads // self.parallel.tp)


def sharding_of(setup: TrainingSetup, zero_stage: int, pp: int) -> tuple[int, int, bool]:
    """Return gathers and scatters per microbatch, and whether they run behind computation.

    They are for a ZeRO stage and a number of pipeline stages that replace the setup's own.
    """
    whole = setup.framework_memory.whole_in_pipeline and pp > 1
    gathers, scatters = sharded_calls(zero_stage, whole)
    buffered = setup.double_buffering or not gathers
    return gathers, scatters, setup.overlap_data_parallel and buffered


def sharded_calls(zero_stage: int, whole_stage: bool) -> tuple[int, int]:
    """Return how often ZeRO gathers weights and scatters gradients in every microbatch.

    Stage 2 keeps sums of shards, so each backward scatters; stage 3 also gathers before each
    forward and each backward. A framework that keeps the `whole_stage` of a pipeline does both once
    per step. Sources: deepspeedai/DeepSpeed pull request 338 (stage 2 communicates in every
    microbatch); pytorch/pytorch pull request 126166 (FSDP2: a reduce-scatter each microbatch, or
    whole gradients in memory); pytorch/torchtitan issue 292 and pull request 4505 (it does the
    former), and torch.distributed.pipelining.stage, backward_maybe_with_nosync (once per step in a
    pipeline).
    """
    if whole_stage:
        return 0, 0
    return 2 * (zero_stage == 3), int(zero_stage >= 2)


def _check_stages(setup: TrainingSetup) -> None:
    """Raise InputError for more stages than layers, unless the empty stages are given.

    Published layouts leave the two stages with a table empty: Llama 3 405B has 126 layers on 128
    virtual stages.
    """
    given, layers, depth = setup.layers_per_stage, setup.shape.layers, setup.placement.depth
    if not given and layers < depth - 2:
        expected = f"at least {depth - 2}, one per stage between the two ends"
        raise InputError("layers of the model", expected=expected, got=layers, key="pp")
    if given and (len(given) != depth or sum(given) != layers or min(given) < 0):
        expected = f"{depth} counts, together {layers}"
        raise InputError("layers_per_stage", expected=expected, got=given)


def _check_adapters(setup: TrainingSetup) -> None:
    """Raise InputError for unsupported adapters, and for frozen weights if all are trained."""
    form, which = frozen_format(setup.frozen_weights), setup.lora_matrices
    if which not in ADAPTED:
        raise unknown("lora_matrices", which, ADAPTED).about("lora_matrices")
    if setup.lora_rank is None:
        if form.quantized:
            expected = "16-bit without lora_rank"
            got = setup.frozen_weights
            raise InputError("frozen_weights", expected=expected, got=got, key="frozen_weights")
        return
    most = setup.shape.hidden
    if check_size("lora_rank", setup.lora_rank) > most:
        expected = f"at most {most:,}"
        raise InputError("lora_rank", expected=expected, got=setup.lora_rank, key="lora_rank")
    has = {"mixers": setup.shape.state_space is not None, "mtp_layers": setup.mtp_layers > 0}
    for part, why in NOT_ADAPTED.items():
        if has[part]:
            raise InputError("lora_rank", expected=why, got=setup.lora_rank, key="lora_rank")
    if which == "query-value" and setup.shape.latent is not None:
        expected = "attention or all-linear, with latent attention"
        raise InputError("lora_matrices", expected=expected, got=which, key="lora_matrices")
    if setup.activation_format.eight_bit:
        expected = "16-bit with lora_rank"
        got = setup.activations
        raise InputError("activations", expected=expected, got=got, key="activations")


def _check_division(setup: TrainingSetup) -> None:
    """Raise InputError for widths that axes do not divide, and unsupported layouts of experts."""
    shape, parallel = setup.shape, setup.parallel
    even = "document_tokens" if setup.document_tokens else setup.context_exchange
    if not setup.zigzag and even in ("document_tokens", "a2a+p2p"):
        raise InputError("zigzag", expected=f"on with {even}", got="off", key="zigzag")
    _divides("sequence", setup.sequence, "cp", parallel.cp)
    _divides("heads of the model", shape.heads, "tp", parallel.tp)
    kv, tp = shape.kv_heads, parallel.tp
    if kv % tp and tp % kv:
        raise InputError(
            "kv_heads of the model", expected=f"a multiple or divisor of tp={tp}", got=kv, key="tp"
        )
    if shape.dense_layers:
        _divides("ffn_hidden of the model", shape.ffn_hidden, "tp", tp)
    _divides("cp", parallel.cp, "context ranks that trade heads", setup.traded_ranks)
    if shape.attention_layers:
        heads, ranks = shape.heads // tp, setup.traded_ranks
        axis = "cp" if setup.trades_heads else "context ranks of a node"
        _divides("heads of a tensor-parallel rank", heads, axis, ranks)
    if setup.sequence_parallel:
        _divides("tokens of a context-parallel rank", setup.sequence // parallel.cp, "tp", tp)
    if shape.state_space is not None:
        _check_mixers(shape.state_space, parallel)
    experts = shape.experts
    if experts is None:
        if parallel.ep > 1:
            raise InputError("ep", expected="1, the model has no experts", got=parallel.ep)
        return
    if not parallel.has_experts:
        raise InputError(
            f"order {parallel.order!r} lays out no experts", expected="ep in it", key="order"
        )
    _divides("experts of the model", experts.count, "ep", parallel.ep)
    _divides("ffn_hidden of an expert", experts.ffn_hidden, "etp", parallel.etp)
    if experts.shared:
        _divides("ffn_hidden of a shared expert", experts.ffn_hidden, "tp", tp)
    if tp > 1 and not setup.sequence_parallel:
        raise InputError(
            "experts under tensor parallelism",
            expected="sequence parallelism too",
            key="sequence_parallel",
        )


def _check_mixers(mixers: StateSpace, parallel: ParallelLayout) -> None:
    """Refuse what Megatron-LM's MambaMixer and MambaContextParallel assert against."""
    tp, cp = parallel.tp, parallel.cp
    _divides("groups of a mixer", mixers.groups, "tp", tp)
    _divides("heads of a mixer on a rank", mixers.mixer_heads // tp, "cp", cp)
    groups = mixers.groups // tp
    if groups % cp and cp % groups:
        raise InputError(
            "groups of a mixer on a rank", expected=f"a multiple or divisor of cp={cp}", got=groups
        )


def _divides(what: str, size: int, axis: str, ways: int) -> None:
    if size % ways:
        raise InputError(what, expected=f"a multiple of {axis}={ways}", got=size)
