"""Reads tables of collectives, step lines of frameworks, and PyTorch's out-of-memory message.

The tables are those of nccl-tests, rccl-tests, MSCCL++'s mscclpp-test, and UCC's ucc_perftest.

The frameworks are Megatron-LM, Megatron-DeepSpeed, GPT-NeoX, NeMo, nanotron, torchtitan, DeepSpeed,
MaxText, torchtune, LLM Foundry, OLMo, ms-swift, LitGPT, nanoGPT, fairseq2, veRL and the trainer of
transformers, and any with the progress bar of tqdm or of Lightning.

Sizes are in bytes, times in seconds, rates in bytes per second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from figgen.scenarios.taking.timeouts import TimedOut, read_timeouts
from figgen.scenarios.texts.entry import is_whole

COLLECTIVES = (
    ("all_reduce", "all-reduce"), ("all_gather", "all-gather"),
    ("allreduce", "all-reduce"), ("allgather", "all-gather"), ("bcast", "broadcast"),
    ("reduce_scatter", "reduce-scatter"), ("alltoall", "all-to-all"), ("broadcast", "broadcast"),
    ("sendrecv", "send-recv"), ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"),
)  # fmt: skip
"""Collectives by the names that the programs have or print, longer names first."""


SHARED = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
"""Collectives whose bus bandwidth depends on the number of ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTime:
    """A row of a table: message size as nccl-tests counts it, time and both bandwidths."""

    message_bytes: int
    time_s: float
    algorithm_bandwidth: float
    bus_bandwidth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLog:
    """A table of `program`; `ranks` and `ranks_per_node` are 0 if the log does not give them."""

    program: str
    collective: str
    ranks: int
    ranks_per_node: int
    rows: tuple[SizedTime, ...]

    @property
    def fit(self) -> tuple[float, float] | None:
        """α in seconds and 1/β in bytes/s of the time α + β·bytes of a message.

        α is the shortest time, and β follows from the additional time of the largest message. A
        table of one size, or whose smallest message takes up to twice the time of its bytes alone,
        shows no α: None.
        """
        latency = min(row.time_s for row in self.rows)
        largest, smallest = self.rows[-1], self.rows[0]
        best = max(row.bus_bandwidth for row in self.rows)
        if len(self.rows) < 2 or smallest.bus_bandwidth > 0.5 * best:
            return None
        rest = largest.time_s - latency
        return latency, largest.message_bytes / rest if rest > 0 else largest.algorithm_bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLog:
    """Training steps that a framework logs: medians over all but the first ones."""

    framework: str
    steps: int
    step_time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    flops_per_s_per_gpu: float | None = None
    utilisation: float | None = None
    memory_bytes: float | None = None
    global_batch: int | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """PyTorch's out-of-memory message: the bytes asked for, and the use of the device's memory."""

    asked_bytes: float
    capacity_bytes: float
    free_bytes: float
    allocated_bytes: float | None
    reserved_unallocated_bytes: float | None


Log = CollectiveLog | StepLog | OutOfMemory | TimedOut

UNITS = {
    "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 2**10, "MB": 2**20,
    "GB": 2**30,
}  # fmt: skip
"""Units of PyTorch's messages; both spellings are binary."""


def read_log(text: str) -> Log | None:
    """Return the log in a text, or None."""
    if re.search(r"\bsize\s+count\s+(?:type|time)\b", text) is not None:
        return _collective(text)
    if re.search(r"\bCount\s+Size\s+Time, us", text) is not None:
        return _ucc(text)
    # Comments of a script may contain the output of an earlier run.
    text = "\n".join([line for line in text.split("\n") if not line.lstrip().startswith("#")])
    if "out of memory" in text and "Tried to allocate" in text:
        return _out_of_memory(text)
    waits = read_timeouts(text)
    if waits is not None:
        return waits
    text = re.sub(r"\x1b\[[\d;]*m", "", text)  # colors
    return _litgpt(text) or _step_lines(text) or _trainer(text) or _progress(text)


def _words(line: str) -> list[str]:
    """Return the words of a line; mpirun and srun prefix each line with the process number."""
    return re.sub(r"^\s*(?:\[[\d,]+\](?:<stdout>)?:?|\d+:)\s", "", line).split()


def _collective(text: str) -> CollectiveLog | None:
    """Read nccl-tests, and mscclpp-test, which prints neither type nor root and only one time."""
    msccl = re.search(r"\bsize\s+count\s+time\b", text) is not None
    rows: list[SizedTime] = []
    for line in text.split("\n"):
        words = _words(line)
        # size count type redop root, then twice: time algbw busbw wrong. Times from a millisecond
        # on have no decimals, and what is wrong may be N/A.
        least = 5 if msccl else 11
        if len(words) < least or not is_whole(words[0]) or not is_whole(words[1]):
            continue
        time, rate, bus = words[2:5] if msccl else words[-8:-5]
        plain = [re.fullmatch(r"\d+(\.\d+)?", one) is not None for one in (time, rate, bus)]
        if int(words[0]) and all(plain):
            rows.append(_row(int(words[0]), float(time), float(rate), float(bus)))
    if not rows:
        return None
    found = re.search(r"([a-z_]{3,20})_perf", text)
    collective = _named(found[1] if found is not None else "")
    ranks = re.findall(r"\bRank\s+\d+\s.*?\bPid\b", text)
    many = len(ranks)
    if many < 2 or not collective:
        collective, many = _by_rates(rows[-1], collective, many)
    hosts = re.findall(r"\bRank\s+\d+ .*? on\s+(\S+)\s+device", text)
    nodes = len(set(hosts))
    even = nodes > 0 and len(hosts) == many and many % nodes == 0
    return CollectiveLog(
        program="mscclpp-test" if msccl else "nccl-tests",
        collective=collective,
        ranks=many,
        ranks_per_node=many // nodes if even else 0,
        rows=tuple(rows),
    )


def _named(name: str) -> str:
    found = [ours for theirs, ours in COLLECTIVES if theirs in name]
    return found[0] if found else ""


def _ucc(text: str) -> CollectiveLog | None:
    """Read ucc_perftest, whose sizes are one rank's part in all-gathers and older all-to-alls.

    Its bandwidth, printed with -F only, is the bus bandwidth: N − 1 such parts in a time.
    """
    found = re.search(r"Collective:\s*([A-Za-z_]{3,20})", text)
    collective = _named(found[1].lower() if found is not None else "")
    rows: list[SizedTime] = []
    for line in text.split("\n"):
        words = _words(line)  # count, size, three times and three bandwidths
        numbers = [re.fullmatch(r"\d+(\.\d+)?", one) is not None for one in words]
        if len(words) not in (5, 8) or not all(numbers[:5]) or not float(words[2]):
            continue
        size, time = int(float(words[1])), float(words[2])
        bus = float(words[5]) if len(words) == 8 and numbers[5] else 0.0
        if size:
            rows.append(_row(size, time, size / time / 1e3, bus))
    if not rows:
        return None
    last = rows[-1]
    factor = last.bus_bandwidth / last.algorithm_bandwidth
    older = "Bus Bandwidth" not in text or factor > 1.02
    parts = collective == "all-gather" or (collective == "all-to-all" and older)
    ranks = 0
    if not parts:
        collective, ranks = _by_rates(last, collective, 0)
    elif factor:
        ranks = round(factor) + 1
        rows = [_times(row, ranks) for row in rows]
    return CollectiveLog(
        program="ucc_perftest",
        collective=collective,
        ranks=ranks,
        ranks_per_node=0,
        rows=tuple(rows),
    )


def _times(row: SizedTime, ranks: int) -> SizedTime:
    """Return a row with one rank's part as a row with the message of all ranks."""
    return SizedTime(
        message_bytes=ranks * row.message_bytes,
        time_s=row.time_s,
        algorithm_bandwidth=ranks * row.algorithm_bandwidth,
        bus_bandwidth=row.bus_bandwidth,
    )


def _by_rates(row: SizedTime, collective: str, ranks: int) -> tuple[str, int]:
    """Return collective and ranks from busbw over algbw, for texts that list only some ranks.

    That ratio is 2(n − 1)/n for an all-reduce, the only one above 1, and (n − 1)/n for others.
    """
    if not row.algorithm_bandwidth:
        return collective, ranks
    factor = row.bus_bandwidth / row.algorithm_bandwidth
    if factor > 1.01 and not collective:
        collective = "all-reduce"
    if ranks > 1:
        return collective, ranks
    passes = 2 if collective == "all-reduce" else 1
    if collective not in SHARED or not 0.1 < factor < passes:
        return collective, ranks
    found = passes / (passes - factor)
    # Rates have two decimals, which tell some sixty ranks apart.
    whole = round(found)
    return collective, whole if abs(found - whole) < 0.2 and whole > 1 else ranks


def _row(size: int, microseconds: float, rate: float, bus: float) -> SizedTime:
    return SizedTime(
        message_bytes=size,
        time_s=microseconds * 1e-6,
        algorithm_bandwidth=rate * 1e9,
        bus_bandwidth=bus * 1e9,
    )


Printed = tuple[str, float, tuple[str, ...]]
"""A field of `StepLog`, the unit of its printed numbers in that of the field, and patterns."""

_TIME_MS = r"elapsed time per iteration \(ms\):\s*([\d.]+)"
_TIME_S = r"elapsed time per iteration \(s\):\s*([\d.]+)"
_BATCH = r"global batch size:\s*(\d+)"
_ALLOCATED = r"max allocated:\s*([\d.]+)"
_MEGATRON_FLOPS = (
    r"throughput per GPU \(TFLOP/s/GPU\):\s*([\d.]+)", r"\|\s*TFLOPs:\s*([\d.]+)",
    r"([\d.]+)\s*MODEL_TFLOP/s/GPU",
)  # fmt: skip

STEP_LINES: dict[str, tuple[Printed, ...]] = {
    "gpt-neox": (
        ("flops_per_s_per_gpu", 1e12, (r"approx flops per GPU:\s*([\d.]+)",)),
        ("step_time_s", 1e-3, (_TIME_MS,)),
        ("global_batch", 1, (_BATCH,)),
        ("memory_bytes", 2**20, (_ALLOCATED,)),
    ),
    "megatron-lm": (
        ("step_time_s", 1e-3, (_TIME_MS,)),
        ("flops_per_s_per_gpu", 1e12, _MEGATRON_FLOPS),
        ("global_batch", 1, (_BATCH,)),
        ("memory_bytes", 2**20, (_ALLOCATED,)),
    ),
    "megatron-deepspeed": (
        ("step_time_s", 1, (_TIME_S,)),
        ("flops_per_s_per_gpu", 1e12, _MEGATRON_FLOPS),
        ("global_batch", 1, (_BATCH,)),
        ("memory_bytes", 2**20, (_ALLOCATED,)),
    ),
    "torchtitan": (
        ("tokens_per_s_per_gpu", 1, (r"tps:\s*([\d,]+)",)),
        ("flops_per_s_per_gpu", 1e12, (r"tflops:\s*([\d.,]+)",)),
        ("utilisation", 0.01, (r"mfu:\s*([\d.]+)%",)),
        ("memory_bytes", 2**30, (r"memory:\s*([\d.]+)GiB",)),
    ),
    "nemo": (
        ("step_time_s", 1, (r"train_step_timing in s:?\s*=?\s*([\d.]+)",)),
        ("flops_per_s_per_gpu", 1e12, (r"TFLOPS_per_GPU:?\s*=?\s*([\d.]+)",)),
        ("global_batch", 1, (r"global_batch_size[:=]\s*(\d+)",)),
    ),
    "nanotron": (
        ("step_time_s", 1e-3, (r"elapsed_time_per_iteration_ms:\s*([\d.]+)",)),
        ("tokens_per_s_per_gpu", 1, (r"tokens_per_sec_per_gpu:\s*([\d.]+)",)),
        ("flops_per_s_per_gpu", 1e12, (r"model_tflops_per_gpu:\s*([\d.]+)",)),
    ),
    "fairseq2": (  # its elements are tokens
        ("tokens_per_s", 1, (r"Train Metrics[^\n]*Elements per Second: ([\d,]+)",)),
        ("memory_bytes", 2**30, (r"Peak Active (?:Device )?Memory: ([\d.]+) ?GiB",)),
    ),
    "verl": (  # its step also generates: only the MFU and memory are the actor's training
        ("utilisation", 1, (r"perf/mfu/actor:(?:np\.float64\()?([\d.]+)",)),
        ("memory_bytes", 2**30, (r"perf/max_memory_allocated_gb:(?:np\.float64\()?([\d.]+)",)),
    ),
    "maxtext": (
        ("step_time_s", 1, (r"completed step: \d+, seconds: ([\d.]+)",)),
        ("tokens_per_s_per_gpu", 1, (r"Tokens/s/device: ([\d.]+)",)),
        ("flops_per_s_per_gpu", 1e12, (r"TFLOP/s/device: ([\d.]+)",)),
    ),
    "torchtune": (
        ("tokens_per_s_per_gpu", 1, (r"tokens_per_second_per_gpu:\s*([\d.]+)",)),
        ("memory_bytes", 2**30, (r"peak_memory_reserved:\s*([\d.]+)",)),
    ),
    "llm-foundry": (
        ("tokens_per_s_per_gpu", 1, (r"throughput/device/tokens_per_sec:\s*([\d.,]+)",)),
        ("memory_bytes", 1e9, (r"memory/peak_reserved_mem:\s*([\d.]+)",)),
    ),
    "olmo": (
        ("tokens_per_s_per_gpu", 1, (
            r"throughput/device/(?:tokens_per_second|TPS)\s*[=:]\s*([\d.,]+)",
        )),
        ("utilisation", 0.01, (r"throughput/device/MFU\s*[=:]\s*([\d.]+)",)),
        ("memory_bytes", 1e6, (r"Peak GPU Memory \(MB\)\s*[=:]\s*([\d.,]+)",)),
    ),
    "ms-swift": (
        ("step_time_s", 1, (
            r"train_speed\(s/it\)'?\"?:\s*'?([\d.]+)",
            r"train_speed\(iter/s\)'?\"?:\s*'?([\d.]*[1-9][\d.]*)",
        )),
        ("memory_bytes", 2**30, (r"memory\(GiB\)'?\"?:\s*'?([\d.]+)",)),
    ),
    "nanogpt": (
        ("step_time_s", 1e-3, (r"iter \d+: loss [\d.]+, time ([\d.]+)ms",)),
        ("utilisation", 0.01, (r"ms, mfu ([\d.]+)%",)),
    ),
    "deepspeed": (  # its samples are those of all replicas; older versions print a mean rate
        ("samples_per_s", 1, (r"CurrSamplesPerSec=([\d.]+)", r"\bSamplesPerSec=([\d.]+)")),
        ("memory_bytes", 2**30, (r"MaxMemAllocated=([\d.]+)\s*GB",)),
    ),
}  # fmt: skip
"""What frameworks print in each step; the first field must occur, and its first pattern counts."""

THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
"""Suffixes of nanotron, which rounds to three digits and writes 4,250 ms as `4.25K`."""


def _step_lines(text: str) -> StepLog | None:
    for framework in STEP_LINES:
        found = _steps(text, framework)
        if found is not None:
            return found
    return None


def _steps(text: str, framework: str) -> StepLog | None:
    """Return the medians of a framework's fields, its largest memory, and its last batch."""
    found: dict[str, float] = {}
    steps = 0
    for field, unit, patterns in STEP_LINES[framework]:
        numbers = _numbers(text, patterns)
        if not numbers and not steps:
            return None
        steps = steps or len(numbers)
        if numbers and field == "memory_bytes":
            found[field] = max(numbers) * unit
        elif numbers:
            found[field] = (numbers[-1] if field == "global_batch" else _middle(numbers)) * unit
    if framework == "torchtitan" and "loss:" not in text:
        return None
    return StepLog(
        framework=framework,
        steps=steps,
        step_time_s=found.get("step_time_s"),
        tokens_per_s_per_gpu=found.get("tokens_per_s_per_gpu"),
        flops_per_s_per_gpu=found.get("flops_per_s_per_gpu"),
        utilisation=found.get("utilisation"),
        memory_bytes=found.get("memory_bytes"),
        global_batch=int(found["global_batch"]) if "global_batch" in found else None,
        samples_per_s=found.get("samples_per_s"),
        tokens_per_s=found.get("tokens_per_s"),
    )


def _numbers(text: str, patterns: tuple[str, ...]) -> list[float]:
    """Return the numbers of the first pattern that occurs; those of rates `iter/s` inverted."""
    for pattern in patterns:
        found = re.finditer(pattern + "([KMG]?)", text)
        numbers = [float(one[1].replace(",", "")) * THOUSANDS[one[2]] for one in found]
        if numbers:
            return [1 / one for one in numbers] if "iter/s" in pattern else numbers
    return []


def _litgpt(text: str) -> StepLog | None:
    """Read LitGPT, which times a microbatch; a step has as many as iterations passed per step."""
    steps = 0
    iterations = 0
    times: list[float] = []
    for one in re.finditer(r"\| iter (\d+) step (\d+) \|[^\n]*?iter time: ([\d.]+) ms", text):
        iterations = int(one[1])
        steps = int(one[2])
        times.append(float(one[3]) / 1e3)
    if not steps:
        return None
    each = max(1, round(iterations / steps))
    return StepLog(framework="litgpt", steps=len(times), step_time_s=each * _middle(times))


def _trainer(text: str) -> StepLog | None:
    """Read the summary of the trainer of transformers, a mean over all steps."""
    rates = _numbers(text, (r"train_steps_per_second'?\"?\s*[:=]\s*'?([\d.]+)",))
    runtime = _numbers(text, (r"train_runtime'?\"?\s*[:=]\s*'?([\d.]+)",))
    if not rates or not rates[-1]:
        return None
    steps = round(rates[-1] * runtime[-1]) if runtime else 1
    exact = runtime[-1] / steps if runtime and steps else 1 / rates[-1]
    return StepLog(framework="transformers", steps=max(steps, 1), step_time_s=exact)


def _progress(text: str) -> StepLog | None:
    """Read tqdm's bar: `[01:23<2:15:00, 8.18s/it]`, or steps per second if they are shorter.

    Lightning's own bar has `0:01:23 • 2:15:00 1.20it/s`.
    """
    found = re.finditer(
        r"(?:\[[\d:]+<[\d:?]+,|[\d:]+ • [\d:-]+)\s*([\d.]*[1-9][\d.]*)(s/it|it/s)", text
    )
    times = [float(one[1]) if one[2] == "s/it" else 1 / float(one[1]) for one in found]
    if not times:
        return None
    return StepLog(framework="a progress bar", steps=len(times), step_time_s=_middle(times))


def _middle(values: list[float]) -> float:
    """Return the median without the first tenth, at least one value, which warms up."""
    kept = values[max(1, len(values) // 10) :] or values
    ordered = sorted(kept)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


ASKED = "Tried to allocate"


def _out_of_memory(text: str) -> OutOfMemory | None:
    """Return the numbers of the first message; those of other ranks have their own."""
    text = ASKED.join(text.split(ASKED)[:2])
    asked = _bytes(text, r"Tried to allocate ([\d.]{1,16}) (\w{1,8})")
    capacity = _bytes(text, r"total capaci?ty of ([\d.]{1,16}) (\w{1,8})")
    capacity = capacity or _bytes(text, r"([\d.]{1,16}) (\w{1,8}) total capacity")
    capacity = capacity or _bytes(text, r"max allowed: ([\d.]{1,16}) (\w{1,8})")
    free = _bytes(text, r"of which ([\d.]{1,16}) (\w{1,8}) is free")
    free = _bytes(text, r"([\d.]{1,16}) (\w{1,8}) free") if free is None else free
    if asked is None or capacity is None:
        return None
    allocated = _bytes(text, r"([\d.]{1,16}) (\w{1,8}) is allocated by PyTorch")
    allocated = (
        _bytes(text, r"([\d.]{1,16}) (\w{1,8}) already allocated")
        if allocated is None
        else allocated
    )
    allocated = (
        _bytes(text, r"MPS allocated: ([\d.]{1,16}) (\w{1,8})") if allocated is None else allocated
    )
    held = _bytes(text, r"and ([\d.]{1,16}) (\w{1,8}) is reserved by PyTorch but unallocated")
    held = _bytes(text, r"([\d.]{1,16}) (\w{1,8}) cached") if held is None else held
    reserved = _bytes(text, r"([\d.]{1,16}) (\w{1,8}) reserved in total by PyTorch")
    if held is None and reserved is not None and allocated is not None:
        held = max(0.0, reserved - allocated)
    allowed = _bytes(text, r"([\d.]{1,16}) (\w{1,8}) allowed;")
    if allowed is not None and allowed < capacity:  # torch.cuda.set_per_process_memory_fraction
        capacity = allowed
        free = max(0.0, allowed - (allocated or 0.0) - (held or 0.0))
    return OutOfMemory(
        asked_bytes=asked,
        capacity_bytes=capacity,
        free_bytes=free or 0.0,
        allocated_bytes=allocated,
        reserved_unallocated_bytes=held,
    )


def _bytes(text: str, pattern: str) -> float | None:
    found = re.search(pattern, text)
    if found is None or found[2] not in UNITS:
        return None
    return float(found[1]) * UNITS[found[2]]
