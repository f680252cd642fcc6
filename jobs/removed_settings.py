"""Warns about environment variables that earlier releases read: a set one must not be ignored in silence."""

import logging
import os
from collections.abc import Mapping

log = logging.getLogger(__name__)

_NO_STANDBY = "runs of code begin as forks, and no sandbox waits for them any more"
REMOVED: Mapping[str, str] = {
    "TRAINYARD_STANDBY_SANDBOXES": _NO_STANDBY,
    "TRAINYARD_NODE_STANDBY_SANDBOX": _NO_STANDBY,
    "TRAINYARD_NODE_STANDBY_AGE": _NO_STANDBY,
    "TRAINYARD_PACKAGE_INSTALLER": "uv, which is installed with Trainyard, installs all packages of code",
}
"""Each variable, and why it has no effect."""


def warn_of_removed(environment: Mapping[str, str] = os.environ) -> None:
    """Log a warning for each removed variable that is set."""
    for variable, reason in REMOVED.items():
        if environment.get(variable):
            log.warning("%s has no effect, remove it: %s", variable, reason)
