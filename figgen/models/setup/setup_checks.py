"""What a training step cannot be: sizes that do not divide, stages without layers, odd adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from figgen.errors import InputError, check_size, unknown
from figgen.models.machine.layout import ParallelLayout
from figgen.models.shape.adapters import ADAPTED, NOT_ADAPTED, frozen_format
from figgen.models.shape.model_shape import StateSpace

if TYPE_CHECKING:
    from figgen.models.setup.training_setup import TrainingSetup


def check_stages(setup: TrainingSetup) -> None:
    """Refuse more stages than layers, unless it is said which stages stay empty.

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


def check_adapters(setup: TrainingSetup) -> None:
    """Refuse adapters that nobody makes, and frozen weights where all are trained."""
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


def check_division(setup: TrainingSetup) -> None:
    """Refuse widths that the axes do not divide, and experts that nobody lays out."""
    shape, parallel = setup.shape, setup.parallel
    _divides("sequence", setup.sequence, "cp", parallel.cp)
    _divides("heads of the model", shape.heads, "tp", parallel.tp)
    kv, tp = shape.kv_heads, parallel.tp
    if kv % tp and tp % kv:
        raise InputError(
            "kv_heads of the model", expected=f"a multiple or divisor of tp={tp}", got=kv, key="tp"
        )
    if shape.dense_layers:
        _divides("ffn_hidden of the model", shape.ffn_hidden, "tp", tp)
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
