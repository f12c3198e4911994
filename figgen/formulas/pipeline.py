"""Pipeline parallelism: idle share, step time, activations in flight, traffic, placement.

`bubble_fraction` is idle time over wall time, `bubble_overhead` idle over ideal time. "Bubble"
alone is never used, because papers mean either. Closed forms hold for equal stages without
communication; timelines come from the simulator.
"""

from __future__ import annotations

from figgen.equations.ops import Number, minimum
from figgen.formulas.notation import formula

NARAYANAN = "Narayanan et al. 2021, arXiv:2104.04473"


@formula(
    symbol=r"f_\text{idle}",
    unit="1",
    source="derivation: one of P stages works at any time",
)
def naive_pipeline_idle_fraction(stages: Number) -> Number:
    """Share of the wall time that a stage idles if one microbatch at a time passes through."""
    return (stages - 1) / stages


@formula(symbol=r"f_\text{bubble}", unit="1", source="Huang et al. 2019 (GPipe), §2.3")
def bubble_fraction(stages: Number, microbatches: Number) -> Number:
    """Idle share of the wall time under GPipe and 1F1B."""
    return (stages - 1) / (microbatches + stages - 1)


@formula(symbol=r"o_\text{bubble}", unit="1", source=f"{NARAYANAN}, §2.2")
def bubble_overhead(stages: Number, microbatches: Number) -> Number:
    """Idle time over ideal time under GPipe and 1F1B."""
    return (stages - 1) / microbatches


# The paper asks for a multiple of P; groups of P or more (Megatron-LM) make any M ≥ P do.
INTERLEAVED = "microbatches >= stages or chunks == 1"


@formula(symbol=r"f_\text{bubble}", unit="1", source=f"{NARAYANAN}, §2.2", where=INTERLEAVED)
def interleaved_bubble_fraction(stages: Number, microbatches: Number, chunks: Number) -> Number:
    """Idle share of the wall time under interleaved 1F1B with V chunks on each GPU.

    Chunks take turns after groups of P or more microbatches; no group is shorter than P.
    """
    return (stages - 1) / (chunks * microbatches + stages - 1)


@formula(symbol=r"o_\text{bubble}", unit="1", source=f"{NARAYANAN}, §2.2", where=INTERLEAVED)
def interleaved_bubble_overhead(stages: Number, microbatches: Number, chunks: Number) -> Number:
    """Idle time over ideal time under interleaved 1F1B with V chunks on each GPU."""
    return (stages - 1) / (chunks * microbatches)


@formula(symbol=r"f_\text{bubble}", unit="1", source="derivation: bubble_fraction at M = 4P")
def bubble_fraction_at_four_microbatches_per_stage(stages: Number) -> Number:
    """Idle share of the wall time with four microbatches per stage, a common rule of thumb."""
    return (stages - 1) / (5 * stages - 1)


@formula(
    symbol=r"\eta",
    unit="1",
    source="derivation: one minus bubble_fraction",
    where=INTERLEAVED,
)
def pipeline_efficiency(stages: Number, microbatches: Number, chunks: Number) -> Number:
    """Useful share of the wall time; V = 1 is GPipe and 1F1B."""
    return chunks * microbatches / (chunks * microbatches + stages - 1)


@formula(symbol=r"M_\eta", unit="microbatch", source="derivation: pipeline efficiency solved for M")
def microbatches_for_efficiency(stages: Number, chunks: Number, efficiency: Number) -> Number:
    """Fewest microbatches for which the pipeline reaches this efficiency (not rounded up).

    With V > 1 chunks it must also be at least P.
    """
    return (stages - 1) * efficiency / (chunks * (1 - efficiency))


@formula(
    symbol=r"T_\text{step}",
    unit="s",
    source=f"{NARAYANAN}, §2.2, with exposed time added",
    where=INTERLEAVED,
)
def pipeline_step_time(
    stages: Number,
    microbatches: Number,
    chunks: Number,
    forward_s: Number,
    backward_s: Number,
    exposed_s: Number,
) -> Number:
    """Time of one step: microbatches, filling and draining, and exposed communication."""
    return (microbatches + (stages - 1) / chunks) * (forward_s + backward_s) + exposed_s


@formula(
    symbol=r"F_p",
    unit="microbatch",
    source="Huang et al. 2019 (GPipe): all forwards precede all backwards",
)
def gpipe_in_flight(microbatches: Number) -> Number:
    """Most microbatches whose activations any stage holds under GPipe."""
    return microbatches


@formula(symbol="F_p", unit="microbatch", source=f"{NARAYANAN}, §2.2", where="stage < stages")
def one_f_one_b_in_flight(stages: Number, stage: Number, microbatches: Number) -> Number:
    """Most microbatches whose activations stage p holds under 1F1B."""
    return minimum(stages - stage, microbatches)


@formula(
    symbol="F_0",
    unit="microbatch",
    source="Megatron-LM theoretical_memory_usage.py; warm-up of schedules.py plus one",
    where="microbatches % stages == 0 and chunks >= 2",
)
def interleaved_in_flight(stages: Number, microbatches: Number, chunks: Number) -> Number:
    """Most activations that stage 0 holds under interleaved 1F1B, counted in whole microbatches.

    A chunk runs P microbatches in a row, as by default in Megatron-LM.
    """
    return minimum(stages * (1 + (stages - 1) / (stages * chunks)), microbatches)


@formula(symbol="w_p", unit="microbatch", source="Megatron-LM schedules.py", where="stage < stages")
def one_f_one_b_warmup(stages: Number, stage: Number, microbatches: Number) -> Number:
    """Forwards that stage p runs before its first backward under 1F1B."""
    return minimum(stages - stage - 1, microbatches)


@formula(
    symbol="w_p",
    unit="microbatch",
    source="Megatron-LM schedules.py",
    where="stage < stages and chunks >= 2",
)
def interleaved_warmup(
    stages: Number,
    stage: Number,
    chunks: Number,
    group_microbatches: Number,
    microbatches: Number,
) -> Number:
    """Chunk forwards that stage p runs before its first backward under interleaved 1F1B."""
    return minimum(
        2 * (stages - stage - 1) + (chunks - 1) * group_microbatches, microbatches * chunks
    )


@formula(symbol="S", unit="B", source=f"{NARAYANAN}, §3.2")
def pipeline_boundary_bytes(
    microbatch_size: Number, sequence_length: Number, hidden: Number, bytes_per_element: Number
) -> Number:
    """Bytes that cross one stage boundary per microbatch per direction."""
    return microbatch_size * sequence_length * hidden * bytes_per_element


@formula(symbol="S", unit="B", source=f"{NARAYANAN}, §4.1 (scatter/gather)")
def split_pipeline_boundary_bytes(
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
    tp: Number,
) -> Number:
    """Bytes per GPU over one boundary if each tensor-parallel rank sends its own share."""
    return microbatch_size * sequence_length * hidden * bytes_per_element / tp


@formula(
    symbol=r"V_\text{PP}",
    unit="B",
    source="derivation: PV − 1 boundaries, both directions",
    where="stages >= 2 or chunks == 1",
)
def pipeline_total_bytes(
    microbatches: Number, stages: Number, chunks: Number, message_bytes: Number
) -> Number:
    """Bytes over all boundaries in one step; interleaving wraps from the last GPU to the first."""
    return 2 * microbatches * (stages * chunks - 1) * message_bytes


@formula(symbol=r"L_\text{stage}", unit="layer", source="definition", where="layers % stages == 0")
def layers_per_stage(layers: Number, stages: Number) -> Number:
    """Layers of each stage if consecutive layers are divided evenly."""
    return layers // stages


@formula(
    symbol=r"\ell_{p,v}",
    unit="1",
    source="Megatron-LM, docstring of virtual pipeline placement",
    where="layers % (stages * chunks) == 0 and stage < stages and chunk < chunks",
)
def looping_first_layer(
    stage: Number, chunk: Number, stages: Number, chunks: Number, layers: Number
) -> Number:
    """First layer, counted from 1, of chunk v on GPU p if chunks loop through the GPUs."""
    return (chunk * stages + stage) * layers // (stages * chunks) + 1


@formula(
    symbol=r"\ell_{p,v}",
    unit="1",
    source="sail-sg/zero-bubble-pipeline-parallelism README (ZB-V); DualPipeV is the same",
    where="layers % (2 * stages) == 0 and stage < stages and chunk <= 1",
)
def v_first_layer(stage: Number, chunk: Number, stages: Number, layers: Number) -> Number:
    """First layer, counted from 1, of chunk v on GPU p if the second chunk runs backwards."""
    return (stage + chunk * (2 * stages - 1 - 2 * stage)) * layers // (2 * stages) + 1
