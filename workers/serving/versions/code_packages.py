"""Installs the packages that user code needs for model children, as the workers do for runners."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from jobs.messages.release import ReleasedCode
from jobs.messages.sandbox import LevelState, present_level
from workers.confinement.environments import uv_command
from workers.confinement.environments.building import Builder
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.failures import BuildFailed, BuildStopped
from workers.confinement.environments.folder import EnvironmentFolder, Held
from workers.confinement.environments.request import NeededPackages
from workers.confinement.environments.uv_command import NoInstaller
from workers.confinement.sandbox.launch import Owner
from workers.model_process.errors import plain_text

logger = logging.getLogger("trainyard.serving.code")

MAX_LINE = 1000


class PackagesMissing(Exception):
    """The packages cannot be installed. The text is the reason."""


def install(
    name: str,
    code: ReleasedCode,
    folder: Path,
    states: Sequence[LevelState],
    claim: Callable[[], AbstractContextManager[Owner | None]],
    stopped: threading.Event,
) -> Held | None:
    """Return the environment for a version's code; None if it asks for no packages. Call it in a thread.

    Args:
        name: the version's name, for the log.
        code: the code.
        folder: has the environments. A worker on this machine may share it.
        states: this machine's sandbox levels.
        claim: gives a build its own user, if the server is root.
        stopped: is set when the server ends.

    Raises:
        PackagesMissing: they cannot be installed.
        OSError: the disk is full.
    """
    if not code.requirements:
        return None

    def builder() -> Builder:
        try:
            uv = uv_command.find_uv()
        except NoInstaller as error:
            raise BuildFailed(f"no packages can be installed: {error}.", code="package_installer") from None
        return Builder(states, uv, claim)

    try:
        return Environments(EnvironmentFolder(folder)).ensure(
            NeededPackages(code.requirements, for_engine=True, packages=code.packages),
            builder,
            minimum=present_level(code.minimum),
            receive=lambda line: logger.info("%s: %s", name, plain_text(line, limit=MAX_LINE)),
            stopped=stopped,
        )
    except (BuildFailed, BuildStopped) as error:
        raise PackagesMissing(f"its packages cannot be installed: {error}") from error
