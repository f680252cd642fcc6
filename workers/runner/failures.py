"""Maps an exception to a failure event with a stable code and a message."""

import errno
import traceback
from pathlib import Path

from jobs.messages.events import Failed
from workers.engine.errors import CodeFailure, EngineError, RefusedInput, is_out_of_memory
from workers.model_process.errors import plain_text
from workers.model_process.library_messages import plain_message


def describe(error: Exception, now: float) -> Failed:
    """Return the final event for `error`."""
    code, message = _code_and_message(error)
    trace = "" if isinstance(error, RefusedInput) else _trace(error)
    return Failed(time=now, code=code, message=message[:2000], traceback=trace[-20_000:])


def _trace(error: Exception) -> str:
    # For user code, only the lines in its own files.
    return error.trace if isinstance(error, CodeFailure) else "".join(traceback.format_exception(error))


def describe_exit(error: SystemExit, now: float) -> Failed:
    """Return the final event for code that ended itself before its task was done."""
    status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    text = f": {error.code}"[:500] if isinstance(error.code, str) else ""
    message = (
        f"the code called sys.exit({status}) before its task was done{text}; return from the function instead"
    )
    trace = "".join(traceback.format_exception(error))
    return Failed(time=now, code="code_exited", message=message, traceback=trace[-20_000:])


def _code_and_message(error: Exception) -> tuple[str, str]:
    if isinstance(error, EngineError):
        return error.code, str(error)
    if is_out_of_memory(error):
        return "out_of_memory", f"the task ran out of memory: {_first_line(error)}; try a smaller batch size"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "disk_full", f"no space left on the worker's disk for {_file_of(error)}"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return "file_limit", f"{_file_of(error)} became larger than the task may write"
    if isinstance(error, FileNotFoundError | PermissionError):
        return "missing_file", f"{_file_of(error)} cannot be read: {error.strerror}"
    return "internal_error", f"{type(error).__name__}: {plain_message(error)}"


def _file_of(error: OSError) -> str:
    """Return the file name without its folders, which belong to a worker."""
    return Path(str(error.filename)).name if error.filename else "a file of the task"


def _first_line(error: Exception) -> str:
    """Return the first paragraph of a message, which may begin with blank lines and have line breaks."""
    first, *_ = str(error).strip().split("\n\n", 1)
    return plain_text(first, limit=500)
