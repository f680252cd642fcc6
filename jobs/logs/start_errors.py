"""Ends a program whose configuration or database is wrong with one sentence instead of a traceback.

In JSON logs, the sentence is one line with the level of errors.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from jobs.logs.foreign_output import JsonLines
from jobs.logs.masking import mask
from jobs.logs.outages import missing_service

CONFIGURATION_STATUS = 1
USAGE_STATUS = 2


@contextmanager
def one_sentence() -> Iterator[None]:
    """Print the sentence of a known error to standard error, and exit. Other errors are raised."""
    try:
        yield
    except SystemExit as error:
        if not isinstance(error.code, str):
            raise
        end_with(error.code)
    # Only errors with a sentence are handled; a bug keeps its traceback.
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        end_with(sentence)


def end_with(sentence: str, status: int = CONFIGURATION_STATUS) -> NoReturn:
    """End the program with a sentence."""
    write_sentence(sentence)
    sys.exit(status)


def write_sentence(sentence: str) -> None:
    """Write the sentence with which a program ends."""
    if isinstance(sys.stderr, JsonLines):
        sys.stderr.write_error(sentence)
    else:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def writes_json() -> bool:
    """Return whether messages of this process are lines of a JSON log."""
    return isinstance(sys.stderr, JsonLines)


class PartParser(argparse.ArgumentParser):
    """Parses the command line of a part. In JSON logs, its errors are one line without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the sentence and exit."""
        if writes_json():
            end_with(f"{message}; --help lists the options", USAGE_STATUS)
        super().error(message)


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
