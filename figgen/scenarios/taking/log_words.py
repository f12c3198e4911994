"""What a log says, in sentences and a table, for the command line and the pages."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.quantity_shown import format_number, shown
from figgen.scenarios.taking.logs import CollectiveLog, Log, OutOfMemory, StepLog
from figgen.scenarios.taking.timeouts import TimedOut, timeout_sentences

HEALTHY = 0.7
"""The share of the links' bandwidth that a large message reaches at least on healthy machines.

Rings on eight H200 and B200 reach 0.75 to 0.82 of NVLink (the catalog's measurements).
"""


def log_sentences(log: Log, line_rate: float | None) -> list[tuple[str, str]]:
    """Return sentences about a log, answer first, each with its kind: plain, good or warning.

    `line_rate` is the busbw, B/s, at which the links under a table of collectives are full.
    """
    if isinstance(log, CollectiveLog):
        return _collective(log, line_rate)
    if isinstance(log, TimedOut):
        return timeout_sentences(log)
    return _memory(log) if isinstance(log, OutOfMemory) else [("plain", _steps(log))]


def collective_rows(log: CollectiveLog, line_rate: float | None) -> list[list[str]]:
    """Return a row per size, with its share of the line rate or, without one, of the best."""
    best = _best(log)
    rows = [
        ["message", "time", "algbw", "busbw", "of the line rate" if line_rate else "of the best"]
    ]
    for row in log.rows:
        rows.append(
            [
                shown(row.message_bytes, "B"),
                shown(row.time_s, "s"),
                shown(row.algorithm_bandwidth, "B/s"),
                shown(row.bus_bandwidth, "B/s"),
                f"{row.bus_bandwidth / (line_rate or best):.0%}" if line_rate or best else "–",
            ]
        )
    return rows


def _best(log: CollectiveLog) -> float:
    return max(row.bus_bandwidth for row in log.rows)


def _collective(log: CollectiveLog, line_rate: float | None) -> list[tuple[str, str]]:
    largest = log.rows[-1]
    ranks = f" of {log.ranks:,} ranks" if log.ranks else ""
    where = f" on nodes of {log.ranks_per_node:,}" if log.ranks_per_node else ""
    name = log.collective or "an unnamed collective"
    sizes = "1 size" if len(log.rows) == 1 else f"{len(log.rows)} sizes"
    read = (
        "plain",
        f"Read as {log.program}: {name}{ranks}{where}, {sizes}.",
    )
    if not _best(log):
        alone = (
            "The table has no bandwidths, from which the ranks follow: run ucc_perftest with -F."
            if log.program == "ucc_perftest"
            else "The bus bandwidth is zero: each process ran alone. Build nccl-tests with MPI=1."
        )
        return [read, ("warning", alone)]
    return [
        read,
        *_verdict(log, line_rate),
        (
            "plain",
            f"The largest message, {shown(largest.message_bytes, 'B')}, took "
            f"{shown(largest.time_s, 's')}: algbw {shown(largest.algorithm_bandwidth, 'B/s')}, "
            f"busbw {shown(largest.bus_bandwidth, 'B/s')}.",
        ),
        *([("plain", _latency(log))] if len(log.rows) > 1 else []),
    ]


def _latency(log: CollectiveLog) -> str:
    """Return a table's latency and the sizes that it bounds, or that the table shows none."""
    if log.fit is None:
        smallest = log.rows[0]
        tests = log.program == "nccl-tests"
        return (
            f"The smallest message, {shown(smallest.message_bytes, 'B')}, already moves at "
            f"{smallest.bus_bandwidth / _best(log):.0%} of the best busbw, so the table does not "
            f"show the latency α: run it from {'8 bytes on (-b 8)' if tests else 'small sizes on'}."
        )
    latency, slope = log.fit
    bound = [row.message_bytes for row in log.rows if 2 * latency >= row.time_s]
    half = next(row for row in log.rows if row.bus_bandwidth >= 0.5 * _best(log))
    return (
        f"The latency α is {shown(latency, 's')}, and messages up to {shown(bound[-1], 'B')} are "
        f"latency-bound; beyond that, a message moves at {shown(slope, 'B/s')}. From "
        f"{shown(half.message_bytes, 'B')} on, busbw is at least half of its best."
    )


def _verdict(log: CollectiveLog, line_rate: float | None) -> list[tuple[str, str]]:
    """Return whether the best busbw is that of healthy links, or nothing without a line rate."""
    if not line_rate:
        return []
    share = _best(log) / line_rate
    said = f"The best busbw is {share:.0%} of the line rate, {shown(line_rate, 'B/s')}"
    if share < HEALTHY:
        return [
            ("warning", f"{said}; healthy links give {HEALTHY:.0%} or more. Look for a slow link.")
        ]
    if log.collective == "all-reduce" and share > 1:
        return [("good", f"{said}: healthy, and more than rings can reach, so the switch adds.")]
    return [("good", f"{said}: healthy, since links give {HEALTHY:.0%} or more.")]


def _steps(log: StepLog) -> str:
    facts: list[str] = []
    if log.step_time_s:
        facts.append(f"{shown(log.step_time_s, 's')} per step")
    if log.tokens_per_s_per_gpu:
        facts.append(f"{format_number(log.tokens_per_s_per_gpu)} tokens/s per GPU")
    if log.tokens_per_s:
        facts.append(f"{format_number(log.tokens_per_s)} tokens/s over all GPUs")
    if log.samples_per_s:
        facts.append(f"{format_number(log.samples_per_s)} samples/s over all replicas")
    if log.flops_per_s_per_gpu:
        facts.append(f"{shown(log.flops_per_s_per_gpu, 'FLOP/s')} per GPU")
    if log.utilisation:
        above = ", which no chip reaches: the trainer assumes another peak"
        facts.append(f"MFU {log.utilisation:.1%}{above if log.utilisation > 1 else ''}")
    if log.memory_bytes:
        facts.append(f"at most {shown(log.memory_bytes, 'B')} of memory")
    steps = "step" if log.steps == 1 else "steps"
    return f"Read as {log.steps:,} {steps} of {log.framework}: {', '.join(facts)}."


def _memory(log: OutOfMemory) -> list[tuple[str, str]]:
    asked, free, held = log.asked_bytes, log.free_bytes, log.allocated_bytes
    torn = log.reserved_unallocated_bytes or 0.0
    tensors = "" if held is None else f", while tensors held {shown(held, 'B')}"
    pieces = f" and {shown(torn, 'B')} was reserved but unallocated" if torn else ""
    found = [
        (
            "plain",
            f"Read as PyTorch's out-of-memory message: it asked for {shown(asked, 'B')} with "
            f"{shown(free, 'B')} free of {shown(log.capacity_bytes, 'B')}{tensors}{pieces}.",
        )
    ]
    if torn and torn + free >= asked:
        found.append(
            (
                "good",
                f"There was enough memory, but fragmented: {shown(torn + free, 'B')}. Try "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before you change the job.",
            )
        )
    elif held is not None:
        found.append(
            (
                "warning",
                f"The job needs at least {shown(held + asked, 'B')} for its tensors, "
                f"{shown(max(0.0, asked - free - torn), 'B')} more than available.",
            )
        )
    return found


def logged_step_s(
    log: StepLog, tokens_per_step: float, gpus: int, global_batch: int
) -> float | None:
    """Return the seconds of a step in a log, printed or from its token or sample rate, or None."""
    if log.step_time_s:
        return log.step_time_s
    if log.tokens_per_s_per_gpu:
        return tokens_per_step / (log.tokens_per_s_per_gpu * gpus)
    if log.tokens_per_s:
        return tokens_per_step / log.tokens_per_s
    if log.samples_per_s:
        return global_batch / log.samples_per_s
    return None


def shared_batch(logged: int, share: float) -> int:
    """Return the microbatches of a log's global batch, of `share` sequences over all replicas.

    Raises InputError if they can't share it evenly.
    """
    if logged % share:
        raise InputError(
            "the log's global batch",
            expected=f"a multiple of {share:g}, as in this configuration (DP times the sequences "
            "of a microbatch)",
            got=logged,
        )
    return int(logged / share)


def batch_words(logged: int, configured: int) -> str:
    """Return a sentence that a log is judged with its own global batch."""
    return (
        f"The log's global batch is {logged:,}, so the job is judged with it, not with "
        f"{configured:,}."
    )


def step_beside(
    log: StepLog, step_time_s: float | None, predicted_s: float, global_batch: int
) -> tuple[str, str]:
    """Return what a log's step means for a configuration; good if both have the same batch."""
    if step_time_s is None:
        return (
            "warning",
            "The log has no step times, so nothing is scaled to it.",
        )
    if log.global_batch and log.global_batch != global_batch:
        return (
            "warning",
            f"The log's global batch is {log.global_batch:,}, and this configuration's "
            f"{global_batch:,}: change it and load the log again.",
        )
    return (
        "good",
        f"A step took {shown(step_time_s, 's')}, {step_time_s / predicted_s:.2f} × the prediction; "
        "all times here are scaled to it.",
    )


def memory_beside(log: Log, predicted_bytes: float) -> list[tuple[str, str]]:
    """Return a log's memory next to what a configuration needs on its fullest GPU."""
    if isinstance(log, CollectiveLog):
        return []
    if isinstance(log, TimedOut):
        return []
    return [
        (
            "plain",
            f"This configuration is predicted to need {shown(predicted_bytes, 'B')} on its fullest "
            f"GPU; the log shows {size}.",
        )
        for size in (_needed(log) if isinstance(log, OutOfMemory) else _reached(log))
    ]


def _needed(log: OutOfMemory) -> list[str]:
    """Return the memory that an out-of-memory message shows a job to need, if any."""
    held = log.allocated_bytes
    return [] if held is None else [f"at least {shown(held + log.asked_bytes, 'B')}"]


def _reached(log: StepLog) -> list[str]:
    """Return the most memory that step lines print, if any."""
    return [f"at most {shown(log.memory_bytes, 'B')}"] if log.memory_bytes else []
