"""Defines the payload and the task that install packages ahead of the runs that need them."""

from typing import Literal

from jobs.kinds.base import Payload
from jobs.messages.task import Task


class InstallPayload(Payload):
    """The packages that are installed.

    Attributes:
        code: the digest of the code version that asks for them.
        requirements: its requirements' digest. Other code with the same digest needs no other installation.
        for_engine: whether models run with them, and so with this program's packages.
    """

    code: str
    requirements: str
    for_engine: bool

    def code_digest(self) -> str | None:
        """Return the code's digest: its packages are installed and used in a sandbox only."""
        return self.code


class InstallTask(Task):
    """Start a program after the packages for the task's code are installed."""

    kind: Literal["install"] = "install"
    for_engine: bool

    def runs_in_engine(self) -> bool:
        """Return whether the models for which it installs packages do."""
        return self.for_engine
