"""Declares the steps of a process that confines itself and becomes a command, as JSON."""

import json
import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["read", "write", "device", "link"]


class Mount(NamedTuple):
    """A part of the view of a sandbox.

    Attributes:
        kind: `read` and `write` show a file or folder of the machine, `device` a device file, and `link` is a
            symbolic link to `source`.
        target: its path in the sandbox.
        source: its path on the machine.
    """

    kind: Kind
    target: str
    source: str


class Plan(NamedTuple):
    """The steps.

    Attributes:
        level: the level, see `jobs.messages.sandbox.Level`.
        command: the program and its arguments.
        folder: the working folder.
        environment: all environment variables of the command.
        parent: the pid of the process that starts it.
        uid, gid: the user that it becomes; None if it keeps the present one.
        privileged: it may make namespaces without a user namespace, as root.
        program: the command line of bubblewrap, to which the arguments of `stages.main` are added.
        network: whether it keeps the network.
        ports: the only TCP ports, by Landlock; None if they are not restricted.
        landlock: paths and rights; None if files are not restricted by Landlock.
        landlock_version: the version to use; 0 for none.
        domain: the version of Landlock that keeps it from the memory of the processes around it, which have
            the same user; 0 for none.
        seccomp: the fields of `seccomp.Options`; None for no filter.
        limits: the kernel's limits: the name of each, soft and hard.
        threads: the limit of the threads of its user; None if others have the same user.
        cgroup: the folder of its control group.
        keep: descriptors that the command inherits, beside its streams.
    """

    level: str
    command: Sequence[str]
    folder: str
    environment: dict[str, str]
    parent: int
    uid: int | None = None
    gid: int | None = None
    privileged: bool = False
    program: Sequence[str] = ()
    network: bool = False
    ports: Sequence[int] | None = None
    landlock: Sequence[tuple[str, int]] | None = None
    landlock_version: int = 0
    domain: int = 0
    seccomp: dict[str, bool] | None = None
    limits: Sequence[tuple[str, int, int]] = ()
    threads: int | None = None
    cgroup: str | None = None
    keep: Sequence[int] = ()

    def write(self, descriptor: int) -> None:
        """Write it to an open file."""
        text = self.as_json().encode()
        while text:
            text = text[os.write(descriptor, text) :]

    def as_json(self) -> str:
        """Return its text."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str | bytes) -> "Plan":
        """Return the plan of a text of `as_json`."""
        return cls(**json.loads(text))

    @classmethod
    def read(cls, descriptor: int) -> "Plan":
        """Read it from an open file, whose position is not changed."""
        size = os.fstat(descriptor).st_size
        return cls.from_json(os.pread(descriptor, size, 0))
