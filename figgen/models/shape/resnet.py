"""Parameters of ResNet-50, on which data parallelism was measured before transformers."""

from __future__ import annotations

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Width of the middle convolution and number of blocks of each stage.

Source: He et al. 2015, arXiv:1512.03385, table 1."""
WIDER = 4
CLASSES = 1000


def resnet_50_parameters() -> int:
    """Return the parameters: convolutions without biases, scales and shifts, and the classifier.

    Each block narrows, convolves 3 × 3 pixels and widens; the first block of a stage also has a
    parallel convolution that widens its input.
    """
    total, incoming = _convolution(3, 64, 7), 64
    for width, blocks in STAGES:
        outgoing = WIDER * width
        total += _convolution(incoming, outgoing, 1)
        for _ in range(blocks):
            total += _convolution(incoming, width, 1) + _convolution(width, width, 3)
            total += _convolution(width, outgoing, 1)
            incoming = outgoing
    return total + incoming * CLASSES + CLASSES


def _convolution(incoming: int, outgoing: int, side: int) -> int:
    return incoming * outgoing * side**2 + 2 * outgoing
