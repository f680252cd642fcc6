"""Raises the errors of user code with their lines in its files."""

import errno
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.engine.errors import CodeFailure, CodeFatalFailure, EngineError, affects_process
from workers.engine.models.own_code.hints import hint_for
from workers.engine.models.own_code.in_use import code_folder, is_active
from workers.model_process.library_messages import plain_message

MAX_TRACE_LINES = 40
_UNREACHED = (errno.ENETUNREACH, errno.EHOSTUNREACH)


@contextmanager
def calling(kind: type[CodeFailure], what: str) -> Iterator[None]:
    """Raise every error from the code that is called inside as a `CodeFailure`.

    Args:
        kind: the error class.
        what: was done, for the message: "building the model".

    Raises:
        CodeFatalFailure: the code raised a `FatalError` of KerasTuner.
        CodeFailure: the code raised another error, or ended the process.
        Exception: an error that affects the whole process.
    """
    try:
        yield
    except EngineError:
        raise
    except SystemExit as error:
        raise kind(f"{what} failed: the code called sys.exit({error.code!r})", trace_of(error)) from error
    # User code may raise anything.
    except Exception as error:
        if affects_process(error):
            raise
        if _is_fatal(error):
            message = f"{what} ended the search: {cause_of(error)}"
            raise CodeFatalFailure(message, trace_of(error)) from error
        raise kind(f"{what} failed: {cause_of(error)}", trace_of(error)) from error


def _is_fatal(error: Exception) -> bool:
    """Return whether an error is one that ends a search of KerasTuner."""
    # Code that raises it has imported the package, which takes three seconds.
    keras_tuner = sys.modules.get("keras_tuner")
    return keras_tuner is not None and isinstance(error, keras_tuner.errors.FatalError)


def cause_of(error: BaseException) -> str:
    """Return an error in one line, with its line in the code in use; its text alone without code."""
    if not is_active():
        return plain_message(error)
    if isinstance(error, CodeFailure):
        return str(error)
    message = plain_message(error) if str(error).strip() else ""
    frames = _own_frames(error)
    where = f" ({_relative(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({_relative(error.filename)}, line {error.lineno})"
        message = error.msg
    where += _of_network(error) + hint_for(f"{message} {error}")
    return f"{type(error).__name__}: {message}{where}" if message else f"{type(error).__name__}{where}"


def _of_network(error: BaseException) -> str:
    """Return who decides about network, if an error is that no other host was found or reached."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in _UNREACHED:
            return "; code reaches other hosts only if its project allows network"
        cause = cause.__cause__ or cause.__context__
    return ""


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the traceback lines that are in the code's own files."""
    folder = code_folder()
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]


def _relative(file: str) -> str:
    path, folder = Path(file), code_folder()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def trace_of(error: BaseException) -> str:
    """Return the traceback lines in the code's own files, and the error."""
    frames = _own_frames(error)
    for frame in frames:
        frame.filename = _relative(frame.filename)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    text = "".join(lines).replace(str(code_folder()), "").splitlines()[-MAX_TRACE_LINES:]
    return "\n".join(["Traceback of the code (most recent call last):", *text])
