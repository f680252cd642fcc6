"""Ends a program whose configuration or database is wrong with one sentence instead of a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.logs.masking import mask
from jobs.logs.outages import missing_service

CONFIGURATION_STATUS = 1


@contextmanager
def one_sentence() -> Iterator[None]:
    """Print the sentence of a known error to standard error, and exit. Other errors are raised."""
    try:
        yield
    # Only errors with a sentence are handled; a bug keeps its traceback.
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
        sys.exit(CONFIGURATION_STATUS)


def sentence_of(error: Exception) -> str | None:
    """Return a sentence about a wrong setting, or a missing service or file; None for other errors."""
    # By its name, since programs without Django use this too.
    if type(error).__name__ == "ImproperlyConfigured":
        return mask(_first_line(error))
    if (service := missing_service(error)) is not None:
        name = "TRAINYARD_DATABASE_URL" if service == "database" else "TRAINYARD_REDIS_URL"
        return mask(f"The {service} does not answer ({name}): {_first_line(error)}")
    if isinstance(error, OSError) and error.filename is not None:
        return mask(f"{error.strerror}: {error.filename}")
    return None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
