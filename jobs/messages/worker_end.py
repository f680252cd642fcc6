"""Defines how long a worker takes to end. What stops one, such as `up`, waits as long."""

import math
import os
from collections.abc import Mapping

GRACE = 30.0
"""Time for a run to write its checkpoint; `TRAINYARD_NODE_GRACE` sets another."""
UPLOAD_GRACE = 20.0
"""Time to copy the last checkpoints to the store; `TRAINYARD_NODE_UPLOAD_GRACE` sets another."""
KILL_SECONDS = 5.0
"""Time to end killed runners and to write the last events and ends of their attempts."""
CLEAN_UP_SECONDS = 5.0
"""Time from a worker's last run to its end."""


def seconds_for_runs(grace: float, upload_grace: float) -> float:
    """Return how long runs may take from the request to yield until their ends are written."""
    return grace + KILL_SECONDS + upload_grace


def seconds_to_end(grace: float = GRACE, upload_grace: float = UPLOAD_GRACE) -> float:
    """Return how long a worker may take from the decision to end until it has ended."""
    return seconds_for_runs(grace, upload_grace) + KILL_SECONDS + CLEAN_UP_SECONDS


def seconds_to_end_in(environment: Mapping[str, str] = os.environ) -> float:
    """Return `seconds_to_end` of a worker with these variables."""
    return seconds_to_end(
        _seconds(environment.get("TRAINYARD_NODE_GRACE"), GRACE),
        _seconds(environment.get("TRAINYARD_NODE_UPLOAD_GRACE"), UPLOAD_GRACE),
    )


def _seconds(text: str | None, default: float) -> float:
    try:
        seconds = float(text or default)
    except ValueError:
        return default  # the worker refuses it, with the name of the variable
    return seconds if 0 <= seconds < math.inf else default
