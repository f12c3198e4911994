"""A job to write, what was written, and the parts of scripts that all writers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.models.machine.layout import ParallelLayout
from figgen.models.setup.training_setup import TrainingSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToWrite:
    """A job for which a file is written.

    `parallel` is the layout on the nodes that a launcher starts, `model` the name in the catalog,
    or "" if it has none, and `dtype` the number format of matmuls.
    """

    setup: TrainingSetup
    parallel: ParallelLayout
    model: str
    dtype: str


@dataclass(slots=True, kw_only=True)
class Written:
    """The text that starts a job; empty if the framework cannot run it, for the reason `refused`.

    `left_out` lists the job's options that the text does not express, each with the reason.
    """

    text: str = ""
    refused: str = ""
    note: str = ""
    left_out: dict[str, str] = field(default_factory=dict)


def refusal(why: str) -> Written:
    """Return the answer for a job that a framework can't run."""
    return Written(refused=why)


def torchrun(parallel: ParallelLayout) -> list[str]:
    """Return the lines of `torchrun` before the program, with backslashes except on the last."""
    first = f"torchrun --nnodes {parallel.nodes} --nproc-per-node {parallel.gpus_per_node} \\"
    if parallel.nodes == 1:
        return [first]
    return [first, "  --node-rank $NODE_RANK --master-addr $MASTER_ADDR \\"]


def command(first: list[str], program: str, options: list[str]) -> str:
    """Return a command in several lines, one per option."""
    lines = [*first, f"  {program}", *[f"  {option}" for option in options]]
    start = lines[: len(first)]
    rest = lines[len(first) :]
    return "\n".join(start) + "\n" + " \\\n".join(rest)


def script(title: str, job: JobToWrite, body: str, left_out: dict[str, str]) -> str:
    """Return a shell script: comments on what it starts and leaves out, and the commands."""
    head = ["#!/bin/bash", f"# {title}: {named(job)}"]
    if job.parallel.nodes > 1 and "$NODE_RANK" in body:
        head.append("# Run it on every node, with NODE_RANK and MASTER_ADDR set.")
    head = head + [f"# Not in this file: {name}, {why}." for name, why in left_out.items()]
    return "\n".join([*head, "", body, ""])


def named(job: JobToWrite) -> str:
    """Return a job in a few words."""
    where = f"{job.parallel.nodes} × {job.parallel.gpus_per_node} GPUs"
    return f"{job.model or 'a model of your own'} on {where}"


def switch(on: bool) -> str:
    """Return a truth value as configuration files write it."""
    return "true" if on else "false"


def leave_out_rest(setup: TrainingSetup, left_out: dict[str, str], known: tuple[str, ...]) -> None:
    """Record the options that no framework supports, unless they are among those `known` here."""
    if setup.lora_rank is not None and "lora" not in known:
        left_out["lora_rank"] = "adapters are not written"
    if setup.buckets is not None and "buckets" not in known:
        left_out["buckets"] = "the framework splits gradients into messages by size"
    if not setup.double_buffering and (setup.parallel.cp > 1 or setup.zero_stage == 3):
        left_out["double_buffering"] = "the framework decides what it prefetches"
    if setup.offloaded_optimizer and "offload" not in known:
        left_out["offloaded_optimizer"] = "the optimizer's state stays on the GPU"
    if setup.offloaded_activations and "away" not in known:
        left_out["offloaded_activations"] = "activations stay on the GPU"
    copied = setup.offloaded_activations + (0 if "behind" in known else setup.offloaded_optimizer)
    if copied and not setup.offload_overlap:
        left_out["offload_overlap"] = "the framework decides whether copies hide behind computation"
    if setup.document_tokens and "documents" not in known:
        left_out["document_tokens"] = "the loader decides whether it masks documents"
    if setup.dropout and "dropout" not in known:
        left_out["dropout"] = "the model's file decides it"
    if setup.mtp_layers and "mtp" not in known:
        left_out["mtp_layers"] = "the model's file decides it"
    if not setup.zigzag and setup.parallel.cp > 1:
        left_out["zigzag"] = "the framework decides how it assigns tokens to context-parallel ranks"
    if setup.expert_skew != 1 and setup.parallel.ep > 1:
        left_out["expert_skew"] = "it is measured: the router decides how many tokens each gets"
    if setup.dispatcher != "usual" and setup.parallel.ep > 1 and "dispatcher" not in known:
        left_out["dispatcher"] = "the framework decides how tokens reach their experts"
    if setup.expert_overlap != "usual" and setup.parallel.ep > 1 and "captured" not in known:
        left_out["expert_overlap"] = "the framework decides what runs behind messages"
    if setup.cuda_graphs != "usual" and "captured" not in known:
        left_out["cuda_graphs"] = "the framework decides what it captures"
    if not setup.flash_attention and "flash" not in known:
        left_out["flash_attention"] = "attention is always fused"
    if setup.activations != "16-bit" and "activations" not in known:
        left_out["activations"] = "activations are kept in 16 bits"
