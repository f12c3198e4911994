"""LoRA: which matrices have an adapter, and the format of the frozen weights.

The adapter of a frozen m × n matrix consists of A (r × m) and B (n × r), which alone are trained.
The output layer, tables, norms and routers have none and stay in 16 bits. Sources: Hu et al. 2021,
arXiv:2106.09685, section 4; huggingface/peft@00336949, src/peft/utils/constants.py ("all-linear"
excludes the output layer).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from figgen.errors import unknown
from figgen.formulas.fine_tuning import doubly_quantized_bits

ADAPTED: Mapping[str, str] = MappingProxyType({
    "query-value": "queries and values",
    "attention": "all of attention",
    "all-linear": "all of attention and feed-forward",
})  # fmt: skip
"""The matrices of a layer that have an adapter, by name of the choice; the first is LoRA's own."""

NOT_ADAPTED: Mapping[str, str] = MappingProxyType({
    "mixers": "none beside state-space mixers: their fused kernel passes by an adapter of the "
    "output projection, so PEFT refuses it, and frameworks differ in what else they adapt",
    "mtp_layers": "none with mtp_layers: what loads a model to fine-tune leaves such modules out",
})  # fmt: skip
"""Parts of a job for which adapters have no published convention, with the reason.

Sources: huggingface/peft@0.19.1, tuners/tuners_utils.py, _check_lora_target_modules_mamba;
huggingface/transformers, models/deepseek_v3/modeling_deepseek_v3.py,
_keys_to_ignore_on_load_unexpected.
"""

PLAIN_BYTES = 2
"""Bytes per weight in the format that matmuls read."""

UNPACKED_SHARE = 0.19
"""Share of the rate that kernels reach at memory at which quantized weights are read and written in
16 bits: from the one pair of runs that differ in nothing else, LoRA and QLoRA of Llama 3.1 8B on an
RTX 4090, which process 3,083 and 2,413 tokens/s (pytorch/torchtune@0031bfb0, README.md). Looking up
four bits keeps a GPU busier than its memory; a fused kernel would be nearer to 1."""

AHEAD_BYTES = (2, 8)
"""Bytes per input and per output of an adapted matrix that a token's forward moves beyond the
matrix's matmul.

The adapter reads the input and writes an output, which is scaled and added to the matrix's in a
pass that reads two tensors and writes one. Source: huggingface/peft, tuners/lora/layer.py,
Linear.forward. Tensors between the thin factors are not counted.
"""
BEHIND_BYTES = (10, 4)
"""The same in backward: inputs are read for one factor's gradient, and their gradient is written
and added to the matrix's; both factors read the gradients of outputs."""
ADAPTER_KERNELS = 9
"""Kernels that an adapter adds. Forward: two matmuls, a scaling and a sum. Backward: four matmuls,
a scaling and a sum, minus the matmul for the gradient of the frozen matrix, which isn't needed."""
LAYER_KERNELS = 160
"""Kernels of a whole layer, forward and backward, in eager PyTorch, as traced on an H100
(`figgen/models/operations/eager_layer.py` lists them)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenFormat:
    """The format of frozen matrices: bytes per weight, and per scale of each output.

    `keeps_inputs` says that their matmuls keep their input although backward does not need it.
    """

    label: str
    weight_bytes: float = PLAIN_BYTES
    output_bytes: float = 0
    keeps_inputs: bool = False
    source: str = ""

    @property
    def quantized(self) -> bool:
        """Return whether every pass first converts the weights to 16 bits."""
        return self.weight_bytes < PLAIN_BYTES


FROZEN: Mapping[str, FrozenFormat] = MappingProxyType(
    {
        "16-bit": FrozenFormat(label="16 bits"),
        "int8": FrozenFormat(
            label="8 bits, a scale for each output",
            weight_bytes=1,
            output_bytes=4,
            keeps_inputs=True,
            source="bitsandbytes, autograd/_functions.py, MatMul8bitLt: scales of rows in FP32, "
            "and the input is saved",
        ),
        "nf4": FrozenFormat(
            label="NF4, doubly quantized (QLoRA)",
            weight_bytes=float(doubly_quantized_bits(4, 8, 64, 32, 256)) / 8,
            source="Dettmers et al. 2023, arXiv:2305.14314, section 3",
        ),
    }
)
"""Formats by name."""


def frozen_format(name: str) -> FrozenFormat:
    """Return the format `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in FROZEN:
        raise unknown("frozen_weights", name, FROZEN)
    return FROZEN[name]
