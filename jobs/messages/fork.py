"""Declares the protocol of fork servers: one JSON object per datagram.

A request comes with the child's file descriptors. A runner supervisor sends a `ForkRequest` with those in
`STREAMS`; the prediction server sends `{}` with one socket. Both send a `ForkIntoSandbox` with five: a file
with the plan, the standard streams, and one that the process keeps. The fork server sends `{"ready": pid}`
once; `{"forked": pid}` or `{"failed": errno}` for each request, in order; and `{"ended": pid, "status": s}`
for each child that belongs to it, with the status as `subprocess` reports it.
"""

from typing import Literal

from pydantic import BaseModel, TypeAdapter

MAX_DATAGRAM = 2**17
"""The most bytes in a datagram."""
STREAMS = ("stdin", "stdout", "stderr", "events")
MOST_DESCRIPTORS = 1 + len(STREAMS)
"""How many descriptors come with a `ForkIntoSandbox`."""


class Confinement(BaseModel):
    """The user that a process becomes, and the folders that it sees.

    Attributes:
        uid: the user and group id that only this process has.
        group: the group that all such processes have, for the files that several read.
        hidden: folders that it does not see; empty where the service cannot hide any.
        visible: folders below the hidden ones that it sees.
    """

    uid: int
    group: int
    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()


class ForkIntoSandbox(BaseModel):
    """A request for a process that enters a sandbox, and runs a module there as a new interpreter would.

    Its plan, a `workers.confinement.sandbox.plan.Plan`, is in a file, so that the fork server, whose memory
    later forks have, does not read it; see `workers.confinement.forking.plan_file`. The plan's command is an
    interpreter with `-m`, a module and arguments, and it keeps one descriptor.
    """

    # Without a default, or an invalid `ForkRequest` would be one of these.
    into_sandbox: Literal[True]


class ForkRequest(BaseModel):
    """A request for a forked runner: its folder, its entire environment and the module to run."""

    folder: str
    environment: dict[str, str]
    module: str
    confinement: Confinement | None = None


FORK_REQUEST: TypeAdapter[ForkRequest | ForkIntoSandbox] = TypeAdapter(ForkRequest | ForkIntoSandbox)
