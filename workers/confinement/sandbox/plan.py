"""Declares the steps with which a process confines itself and becomes a command, as JSON."""

import json
import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["read", "write", "device", "link"]


class Mount(NamedTuple):
    """One mount in a sandbox's view.

    Attributes:
        kind: `read` and `write` show a file or folder from the machine, `device` a device file, and `link`
            a symbolic link to `source`.
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
        environment: all environment variables for the command.
        parent: the pid that starts it.
        uid, gid: the user that it becomes; None if it keeps the present one.
        privileged: it may make namespaces without a user namespace, as root.
        program: the command line for bubblewrap, to which the arguments for `stages.main` are added.
        network: whether it keeps the network.
        ports: the only TCP ports, by Landlock; None if they are not restricted.
        landlock: paths and rights; None if files are not restricted by Landlock.
        landlock_version: the version to use; 0 for none.
        domain: the Landlock version that keeps it from the memory of the processes around it, which have
            the same user; 0 for none.
        seccomp: the fields for `seccomp.Options`; None for no filter.
        limits: the kernel's limits: each with name, soft and hard.
        threads: how many threads its user may have; None if others have the same user.
        cgroup: the folder with its control group.
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
        """Return the plan in a text from `as_json`."""
        return cls(**json.loads(text))

    @classmethod
    def read(cls, descriptor: int) -> "Plan":
        """Read it from an open file, whose position is not changed."""
        size = os.fstat(descriptor).st_size
        return cls.from_json(os.pread(descriptor, size, 0))
