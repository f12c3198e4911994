"""A step of reinforcement learning: write answers, score them, train on them, copy the weights.

Memory and messages limit the writing (`figgen.models.algorithms.rollouts`). Scoring and training
take the time that the step model predicts for packed sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from figgen.catalog import link, nccl_tuning
from figgen.catalog.hardware import Accelerator
from figgen.catalog.models import Model
from figgen.catalog.nccl_links import nccl_group
from figgen.catalog.post_training import PostTrainingRun
from figgen.formulas.alpha_beta import point_to_point_time
from figgen.formulas.serving import sequences_that_fit
from figgen.lookups import remembered
from figgen.models.algorithms.rollouts import Decoding, Rollout, answer_lengths, rollout
from figgen.models.machine.nccl_tuning import predictions
from figgen.scenarios.evidence.decoding import decoding_share, token_cache_bytes
from figgen.scenarios.options.resolve import TrainingStep, training_step

NIC = "ib-ndr"
PROMPT = 150
"""Tokens of a prompt. This is an assumption: a short math question in a chat template."""

USABLE = 0.8
"""The share of the memory that weights and caches may fill while answers are written."""

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0}
SUMS_PER_LAYER = 2
"""All-reduces of a layer in a decode step under TP: one after attention, one after the MLP."""

PASSES = {"none": 3.0, "full": 4.0}
"""Forward passes that a training update costs, by recomputation: the backward counts as two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostTrainingStep:
    """Predicted seconds of each phase; if they run `apart`, the rollout overlaps the other two.

    `rollout` writes the answers of `batches` steps, as many as may be in flight at once.
    """

    rollout: Rollout
    batches: int
    score_s: float
    train_s: float
    synchronize_s: float
    apart: bool
    training: TrainingStep

    @property
    def generate_s(self) -> float:
        """Seconds to write the answers of one step."""
        return self.rollout.time_s / self.batches

    @property
    def time_s(self) -> float:
        """Seconds of the step: the sum of its phases, or the longer side if two groups share it."""
        trained_s = self.score_s + self.train_s
        if self.apart:
            return max(self.generate_s, trained_s) + self.synchronize_s
        return self.generate_s + trained_s + self.synchronize_s


def decoding(
    model: Model, chip: Accelerator, tp: int, answers: int, *, precision: str, gpus_per_node: int
) -> Decoding:
    """Return a decode step of one copy of the model on `tp` GPUs, for `answers` answers at once."""
    latency_s = 0.0
    if tp > 1:
        within = chip.scale_up_domain or gpus_per_node
        nodes = max(1, tp // within)
        group = nccl_group(chip.scale_up, tp, nodes, link(NIC))
        message = answers * model.hidden * WEIGHT_BYTES["bf16"]
        best = predictions(nccl_tuning().constants, group, "all-reduce", message)[0]
        latency_s = SUMS_PER_LAYER * model.layers * best.time_s
    return Decoding(
        held_bytes=float(model.read_parameters) * WEIGHT_BYTES[precision],
        cache_bytes_per_token=token_cache_bytes(model),
        bandwidth_bytes_per_s=tp * chip.hbm_bandwidth_bytes_per_s * decoding_share(),
        latency_s=latency_s,
    )


def written(
    model: Model,
    chip: Accelerator,
    *,
    gpus: int,
    tp: int,
    answers: int,
    mean: int,
    longest: int,
    precision: str = "bf16",
    gpus_per_node: int = 8,
) -> Rollout:
    """Return the rollout of one copy. Copies share the answers evenly, in as many slots as fit."""
    each = ceil(answers * tp / gpus)
    step = decoding(model, chip, tp, each, precision=precision, gpus_per_node=gpus_per_node)
    memory = USABLE * tp * chip.capacity_bytes
    cache = mean * step.cache_bytes_per_token
    held = float(model.parameters) * WEIGHT_BYTES[precision]
    fit = int(sequences_that_fit(memory, held, cache)) if memory > held else 1
    prompt = min(PROMPT, mean - 1)
    lengths = [prompt + one for one in answer_lengths(mean - prompt, longest - prompt, each)]
    return rollout(step, lengths, prompt=prompt, slots=max(1, min(each, fit)))


@remembered(128)
def trained(run: PostTrainingRun) -> TrainingStep:
    """Return a training update on answers packed to the longest length, as many per replica."""
    gpus = run.gpus - run.generating
    replicas = gpus // (run.tp * run.cp * run.pp)
    packed = run.answers * run.mean / run.updates / run.longest
    return training_step(
        model=run.model.name,
        accelerator=run.accelerator.name,
        nic=NIC,
        nodes=gpus // run.gpus_per_node,
        gpus_per_node=run.gpus_per_node,
        tp=run.tp,
        cp=run.cp,
        ep=run.ep,
        etp=1,
        pp=run.pp,
        sequence=run.longest,
        global_batch=replicas * ceil(packed / replicas),
        zero_stage=1,
        recompute=run.recompute,
    )


@remembered(128)
def predicted_post_training(run: PostTrainingRun) -> PostTrainingStep:
    """Predict the phases of a published run; the model was not fitted to such runs."""
    training = trained(run)
    update_s = training.estimate.step_time_s
    forward_s = run.updates * update_s / PASSES[run.recompute]
    held = float(run.model.parameters) * WEIGHT_BYTES[run.generation] / run.generation_tp
    near, far = run.accelerator.scale_up_bandwidth_bytes_per_s, link(NIC).bandwidth_bytes_per_s
    batches = max(1, run.steps_old)
    return PostTrainingStep(
        rollout=written(
            run.model,
            run.accelerator,
            gpus=run.generating or run.gpus,
            tp=run.generation_tp,
            answers=run.answers * batches,
            mean=run.mean,
            longest=run.longest,
            precision=run.generation,
            gpus_per_node=run.gpus_per_node,
        ),
        batches=batches,
        score_s=2 * forward_s,
        train_s=run.updates * update_s,
        synchronize_s=float(point_to_point_time(held, 0.0, far if run.apart else near)),
        apart=run.apart,
        training=training,
    )
