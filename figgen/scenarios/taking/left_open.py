"""Lists the values that a step uses for options of time and memory that a text doesn't set."""

from __future__ import annotations

from dataclasses import replace

from figgen.scenarios.architectures.sizes import missing_sizes
from figgen.scenarios.taking.given import FOLLOWS
from figgen.scenarios.taking.job import TakenJob
from figgen.scenarios.taking.named import Sizes, name_of_sizes, other_sizes
from figgen.scenarios.taking.own_lines import OwnNames

UNSAID = "the text doesn't say"
REASONS = {"global_batch": FOLLOWS, "sequence": "the model's own"}
"""Reasons for what other options determine."""

NO_JOBS = ("hostfile", "hostnames", "rankfile", "srun", "config.json")
"""Kinds of texts that are only about machines or models."""

Values = dict[str, int | str | bool]

KINDS: Values = {
    "activation": "swiglu", "norm": "rmsnorm", "tied": False, "bias": False,
    "learned_positions": False,
}  # fmt: skip
"""The kinds of layers of a model of which a text gives only sizes."""


def completed_job(job: TakenJob, names: OwnNames, models: dict[str, Sizes]) -> TakenJob:
    """Return a job with its model's name and with every option that the text leaves open.

    A model of the catalog is named if it has all the sizes in the text. `usual` names the options
    in `assumed` that a step sets by default, and `missing` the options without a default. Nothing
    is added while variables have no value, nor to one of this site's own lines that starts from a
    preset, which decides the rest.
    """
    taken = dict(job.taken)
    changed = other_sizes(taken, models)
    if changed:
        taken.pop("model")
    job = replace(job, assumed={**job.assumed, **changed})
    known: Values = {**job.assumed, **taken}
    name = "" if "model" in known else name_of_sizes(known, taken, models)
    notes = list(job.notes)
    if name:
        taken["model"] = name
        known["model"] = name
        if "vocab" not in known:
            notes.append(
                f"the sizes are those of {name}; the text has no vocabulary, so its "
                f"{models[name]['vocab']:,} tokens are used"
            )
    job = replace(job, notes=notes)
    own = job.dialect == "figgen"
    based = own and any(one.lstrip("-") in ("preset", "run") for one in job.left)
    if job.asked or job.dialect in NO_JOBS or based:
        return replace(job, taken=taken)
    assumed = dict(job.assumed)
    because = dict(job.because)
    for option in changed:
        because[option] = f"{job.taken['model']}'s"
    usual: list[str] = []
    for option, value in _open(known, names, models).items():
        usual.append(option)
        assumed[option] = value
        because[option] = REASONS.get(option, UNSAID)
    missing = [one for one in ("nodes", "gpus_per_node") if one not in known and one not in assumed]
    if "model" not in known:
        sized = "layers" in known or "hidden" in known
        kinds: Values = {**KINDS, "top_k": 1} if "experts" in known else KINDS
        for option, kind in kinds.items() if sized else ():
            if option not in known:
                assumed[option] = kind
                because[option] = UNSAID
        missing = [*(_missing(known, taken) if sized else ["model"]), *missing]
    return replace(job, taken=taken, assumed=assumed, because=because, usual=usual, missing=missing)


def _missing(known: Values, taken: Values) -> list[str]:
    """Return the sizes that a model needs; experts are as wide as a block that the text gives."""
    wide = "experts" not in known or "expert_ffn" in known or "ffn" in taken
    return missing_sizes(known) if wide else [*missing_sizes(known), "expert_ffn"]


def _open(known: Values, names: OwnNames, models: dict[str, Sizes]) -> Values:
    """Return the options that are not known, with the values that the step takes for them."""
    found: Values = {}
    for option, value in names.usual.items():
        if option not in known and _matters(option, known, names):
            found[option] = value
    if "gpus_per_node" in found:
        chip, usual = str(known.get("accelerator", "")), found["gpus_per_node"]
        found["gpus_per_node"] = names.domains.get(chip, usual)
    schedule = str(known.get("schedule", found.get("schedule", "")))
    if "chunks" not in known and schedule in names.chunks:
        found["chunks"] = names.chunks[schedule]
    if "lora_rank" not in known:
        found["lora_rank"] = "none"
    model = models.get(str(known.get("model", "")))
    if "sequence" not in known and model is not None:
        found["sequence"] = model["sequence"]
    elif "sequence" not in known and "layers" in known and "hidden" in known:
        found["sequence"] = names.sequence
    _add_batch(known, found)
    return found


def _matters(option: str, known: Values, names: OwnNames) -> bool:
    """Return whether an option has an effect with the others; an exchange has none without CP."""
    needed = names.matters_with.get(option)
    if needed is None:
        return True
    return any(str(known.get(one, 0)) not in ("0", "1", "none") for one in needed)


def _add_batch(known: Values, found: Values) -> None:
    """Add the number of microbatches and the global batch."""
    if "global_batch" in known:
        return
    stages = _whole(known, "pp", 1)
    if "microbatches" not in known:
        found["microbatches"] = 4 * stages
    values: Values = {**found, **known}
    count = _whole(values, "microbatches", 1)
    world = _whole(known, "nodes", 0) * _whole(values, "gpus_per_node", 0)
    inner = _whole(known, "tp", 1) * _whole(known, "cp", 1) * stages
    if world and world % inner == 0:
        found["global_batch"] = count * _whole(known, "microbatch_size", 1) * (world // inner)


def _whole(values: Values, option: str, usual: int) -> int:
    value = values.get(option, usual)
    return value if isinstance(value, int) else usual
