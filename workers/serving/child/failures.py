"""The ways in which a batch can fail. None of them ends the child."""

from workers.engine.errors import is_out_of_memory
from workers.model_process.errors import LACKS_MEMORY


class BatchFailed(Exception):
    """A batch that has no outputs. `kind` decides the HTTP status; the message is shown to the caller."""

    kind = "internal"


class ShapesRefused(BatchFailed):
    """The model cannot compute inputs with these shapes."""

    kind = "input"


class OutOfMemory(BatchFailed):
    """The batch needs more memory than is free; a smaller one, or a later one, may fit."""

    kind = LACKS_MEMORY


def failure_of(error: Exception) -> BatchFailed:
    """Return the failure to report for an exception in a batch, without text from other libraries."""
    if isinstance(error, BatchFailed):
        return error
    if is_out_of_memory(error):
        return OutOfMemory("The model's process has too little free memory for this request")
    return BatchFailed("The model failed on this request; the log of the prediction server has the cause")
