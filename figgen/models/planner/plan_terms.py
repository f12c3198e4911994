"""The seconds of a predicted step, term by term."""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.models.step.job import Job
from figgen.models.step.timed_step import StepSeconds


def named_terms(job: Job, parts: StepSeconds) -> dict[str, Number]:
    """Return the seconds of a step by term; they add up to the step."""
    share = job.expert_layers / job.layers
    passes = job.microbatches * job.fullest_layers

    def mixed(name: str) -> Number:
        dense, expert = getattr(parts.dense, name), getattr(parts.expert, name)
        return passes * ((1 - share) * dense + share * expert)

    products, attention, memory = mixed("matmuls_s"), mixed("attention_s"), mixed("memory_s")
    messages, repeated, layers = mixed("messages_s"), mixed("repeated_s"), mixed("total_s")
    return {
        "products": products,
        "attention": attention,
        "memory": memory,
        "messages": messages,
        "repeated": repeated,
        "host": layers - (products + attention + memory + messages + repeated),
        "ends": parts.work_s - layers,
        "gathers": parts.sharding_s,
        "idle": parts.idle_s,
        "stages": parts.stage_messages_s,
        "gradients": parts.gradients_s,
        "update": parts.update_s,
        "straggling": parts.straggling_s,
        "fixed": parts.fixed_s,
    }
