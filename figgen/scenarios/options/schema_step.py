"""Options for how a step is carried out: overlap, exchanges, efficiency and latencies.

`figgen.scenarios.options.schema` has the other options, and the table of all.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import MOST_SKEW
from figgen.scenarios.options.option import Option

STEP_OPTIONS = (
    Option(
        name="compute_efficiency",
        kind="number",
        group="overlap",
        label="Efficiency of matmuls",
        asked_by=("step",),
        hint="share of the dense peak, 0 to 1; what published runs attain by default",
        low=0.01,
        high=1,
        key="efficiency",
        flag="efficiency",
    ),
    Option(
        name="time_factor",
        kind="number",
        group="overlap",
        label="Measured over predicted step time",
        asked_by=("step",),
        hint="1.18 if your steps take 1.18 times as long as predicted: every rate and latency is "
        "then taken 1.18 times slower",
        low=0.2,
        high=20,
        key="factor",
    ),
    Option(
        name="buckets",
        kind="whole",
        group="overlap",
        label="Gradient buckets",
        hint="number of messages for the gradients; one per layer by default",
        low=1,
        high=1024,
    ),
    Option(
        name="overlap_data_parallel",
        kind="switch",
        group="overlap",
        label="Overlap data parallelism with computing",
        asked_by=("step",),
        key="overlap",
        flag="overlap",
    ),
    Option(
        name="overlap_weights",
        kind="switch",
        group="overlap",
        label="Overlap the gather of updated weights",
        hint="without it, the first forward waits for ZeRO-1's weights",
        asked_by=("step",),
        key="gather",
    ),
    Option(
        name="double_buffering",
        kind="switch",
        group="overlap",
        label="Double-buffer keys, values and weights",
        key="double",
    ),
    Option(
        name="context_exchange",
        kind="choice",
        group="overlap",
        label="Exchange between context-parallel ranks",
        key="exchange",
    ),
    Option(
        name="zigzag",
        kind="switch",
        group="overlap",
        label="Zig-zag: give context-parallel ranks equal work",
        asked_by=("step",),
    ),
    Option(
        name="dispatcher",
        kind="choice",
        group="overlap",
        label="Dispatcher of tokens to experts",
        hint="how tokens reach experts on other ranks; DeepEP and HybridEP send a token once to "
        "a node that has several of its experts",
    ),
    Option(
        name="expert_overlap",
        kind="choice",
        group="overlap",
        label="Overlap of tokens on their way to experts",
        asked_by=("step",),
        hint="whether another microbatch computes during the exchange",
        key="eoverlap",
    ),
    Option(
        name="cuda_graphs",
        kind="choice",
        group="overlap",
        label="CUDA graphs",
        asked_by=("step",),
        hint="what the host launches in one call; otherwise the host limits layers of experts",
        key="graphs",
    ),
    Option(
        name="expert_skew",
        kind="number",
        group="overlap",
        label="Tokens of the fullest rank of experts",
        hint="times the mean of the ranks that share experts; 1 for even routing",
        low=1,
        high=MOST_SKEW,
        key="skew",
    ),
    Option(
        name="scale_up_latency_s",
        kind="quantity",
        group="overlap",
        label="Latency inside a node",
        asked_by=("step",),
        hint="the link's latency by default, or NCCL's if the catalog has none",
        high=1,
        unit="s",
        form_unit="µs",
        scale=1e-6,
        key="alpha_up",
    ),
    Option(
        name="network_latency_s",
        kind="quantity",
        group="overlap",
        label="Latency of the network",
        asked_by=("step",),
        hint="NCCL's by default",
        high=1,
        unit="s",
        form_unit="µs",
        scale=1e-6,
        key="alpha_net",
    ),
)
"""The options in the order of a form."""
