"""Reads why a data set or a model version was refused."""

from collections.abc import Mapping
from typing import Any

from jobs.answers.base import CauseOut


def cause_of(error: Mapping[str, Any] | None) -> CauseOut | None:
    """Return a stored error's code and message. Its traceback names files on a worker."""
    if error is None:
        return None
    return CauseOut(code=error.get("code", "failed"), message=error.get("message", ""))
