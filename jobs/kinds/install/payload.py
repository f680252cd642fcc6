"""Defines the payload and the task of an installation of packages ahead of the runs that need them."""

from typing import Literal

from jobs.kinds.base import Payload
from jobs.messages.task import Task


class InstallPayload(Payload):
    """The packages that are installed.

    Attributes:
        code: the digest of the version of code that asks for them.
        requirements: the digest of its requirements: other code with the same needs no other installation.
        for_engine: whether models run with them, and so with the packages of this program.
    """

    code: str
    requirements: str
    for_engine: bool

    def code_digest(self) -> str | None:
        """Return the digest of the code: its packages are installed and used in a sandbox alone."""
        return self.code


class InstallTask(Task):
    """Start a program with the packages of the task's code, which are installed before."""

    kind: Literal["install"] = "install"
    for_engine: bool

    def runs_in_engine(self) -> bool:
        """Return whether the models for which it installs packages do."""
        return self.for_engine
