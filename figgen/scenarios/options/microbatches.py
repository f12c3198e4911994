"""The number of microbatches per replica in a step."""

from __future__ import annotations

from figgen.errors import InputError, check_size
from figgen.models.machine.layout import ParallelLayout


def microbatches_of(
    parallel: ParallelLayout,
    microbatches: int | None,
    global_batch: int | None,
    microbatch_size: int,
) -> int:
    """Return the chosen number, or the one that the global batch implies, or four per stage.

    Raises InputError for a global batch that the replicas cannot share evenly.
    """
    if global_batch is None:
        return 4 * parallel.pp if microbatches is None else microbatches
    share = parallel.dp * check_size("microbatch_size", microbatch_size)
    sequences = check_size("global_batch", global_batch)
    if sequences % share:
        expected = f"a multiple of dp · microbatch_size = {share}"
        raise InputError("global_batch", expected=expected, got=global_batch)
    return sequences // share
