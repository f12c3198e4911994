"""Seconds of each pass of a microbatch through a layer, the head or a whole pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number
from figgen.models.pipeline.pass_lines import Passes


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSeconds:
    """Seconds of forward, recomputation, input gradients and weight gradients.

    Recomputation (`again_s`) runs in backward, before the input gradients.
    """

    forward_s: Number
    again_s: Number
    inputs_s: Number
    weights_s: Number

    @property
    def total_s(self) -> Number:
        """Seconds of all passes."""
        return self.forward_s + self.again_s + self.inputs_s + self.weights_s


def added(one: PassSeconds, other: PassSeconds) -> PassSeconds:
    """Return the sum of two, pass by pass."""
    return PassSeconds(
        forward_s=one.forward_s + other.forward_s,
        again_s=one.again_s + other.again_s,
        inputs_s=one.inputs_s + other.inputs_s,
        weights_s=one.weights_s + other.weights_s,
    )


def times(one: PassSeconds, count: Number) -> PassSeconds:
    """Return passes that take `count` times as long."""
    return PassSeconds(
        forward_s=count * one.forward_s,
        again_s=count * one.again_s,
        inputs_s=count * one.inputs_s,
        weights_s=count * one.weights_s,
    )


def split_of(one: PassSeconds) -> Passes:
    """Return the shares of the three passes that a schedule orders."""
    total_s = one.total_s
    return Passes(
        forward=one.forward_s / total_s,
        inputs=(one.again_s + one.inputs_s) / total_s,
        weights=one.weights_s / total_s,
    )
