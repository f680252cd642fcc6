"""Defines a task's errors: each has a stable code and a message written for users."""

import errno
from typing import Any

from jobs.spec.error_codes import CODE_FATAL
from jobs.spec.sections.data import TARGET_GAPS

OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
"""XLA has no exception class for a full device, so its messages are searched for these words."""


class EngineError(Exception):
    """The task cannot continue. `code` is stable; the message names the problem and how to fix it."""

    code = "failed"


class RefusedInput(EngineError):
    """The input cannot be used. The message is all that its author needs: reports have no traceback."""


class BadData(RefusedInput):
    """The data cannot be used; the message names the column and row."""

    code = "bad_data"


class TooLarge(BadData):
    """A file is larger than the task's limits; the message names both numbers."""


class DamagedFile(BadData):
    """A file's bytes are not in its format; the message names the file and the reason."""

    code = "damaged_file"


class TargetGaps(BadData):
    """Rows have no target, and their sender has not chosen to leave them out."""

    code = TARGET_GAPS


class BadModel(RefusedInput):
    """The file is not a model that can be loaded safely; the message names the problem."""

    code = "bad_model"


class BadSpec(RefusedInput):
    """The spec asks for something that this data or this machine cannot provide."""

    code = "bad_spec"


class CodeFailure(EngineError):
    """User code failed.

    Attributes:
        trace: the traceback lines that are in its own files.
        hyperparameters: of KerasTuner, as far as a build has declared them; None for other failures.
    """

    code = "code_failed"

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace
        self.hyperparameters: Any = None


class CodeImportFailure(CodeFailure):
    """The code cannot be imported."""

    code = "code_import"


class CodeBuildFailure(CodeFailure):
    """The code does not build a model."""

    code = "code_build"


class CodeFitFailure(CodeFailure):
    """The code failed while it trained or evaluated its model."""

    code = "code_fit"


class CodeFatalFailure(CodeFailure):
    """The code raised a `FatalError` of KerasTuner, which ends the search."""

    code = CODE_FATAL


class CodeDataFailure(CodeFailure):
    """The code failed while it loaded data."""

    code = "code_data"


class WrongShape(CodeFailure):
    """The model does not fit the data's shape."""

    code = "wrong_shape"


class BadLayout(RefusedInput):
    """A layout rule does not match the model's variables."""

    code = "bad_layout"


class BadCheckpoint(EngineError):
    """A checkpoint is intact but belongs to another model."""

    code = "bad_checkpoint"


class NoAccelerator(EngineError):
    """The process was given a GPU or a TPU, but JAX cannot use it."""

    code = "no_gpu"


class ProgramFailed(CodeFailure):
    """A user's program has failed. `trace` is the end of its error output."""

    def __init__(self, code: str, message: str, trace: str = "") -> None:
        super().__init__(message, trace)
        self.code = code


class NanLoss(EngineError):
    """The loss became NaN or infinite."""

    code = "nan_loss"


class NanObjective(EngineError):
    """The objective was NaN or infinite in every epoch."""

    code = "nan_objective"


def is_out_of_memory(error: Exception) -> bool:
    """Return whether the process, or one of its devices, ran out of memory."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


def affects_process(error: Exception) -> bool:
    """Return whether an error affects the whole process, its device or its disk, not only one training."""
    if isinstance(error, EngineError):
        return False
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return True
    # Compared by name, because this module is imported by processes that never load JAX.
    return is_out_of_memory(error) or type(error).__name__ == "JaxRuntimeError"
