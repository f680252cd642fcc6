"""How a task fails by its own fault: each kind has a stable code and a sentence for people."""

import errno

OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


class EngineError(Exception):
    """The task cannot go on; `code` is stable, the message is a sentence that says what would do."""

    code = "failed"


class BadData(EngineError):
    """The data cannot be used; the message names the column and row."""

    code = "bad_data"


class BadSpec(EngineError):
    """The spec asks for something that this data or this machine cannot give."""

    code = "bad_spec"


class BadLayout(EngineError):
    """A layout rule does not fit the model's variables."""

    code = "bad_layout"


class BadCheckpoint(EngineError):
    """A checkpoint is whole but belongs to another model."""

    code = "bad_checkpoint"


class NanLoss(EngineError):
    """The loss became NaN or infinite."""

    code = "nan_loss"


class NanObjective(EngineError):
    """The objective was NaN or infinite from the first epoch to the last."""

    code = "nan_objective"


def is_out_of_memory(error: Exception) -> bool:
    """Say whether the process, or a device, had no memory left."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


def ends_the_task(error: Exception) -> bool:
    """Say whether an error concerns more than the training that met it: the process, its device or disk."""
    if isinstance(error, EngineError):
        return False
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return True
    return is_out_of_memory(error) or type(error).__name__ == "JaxRuntimeError"
