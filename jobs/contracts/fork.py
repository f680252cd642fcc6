"""What a supervisor says to a fork server, and hears: one JSON object a datagram.

The supervisor asks with a `ForkRequest` and the descriptors of `STREAMS`. It is told `{"ready": pid}` once;
`{"forked": pid}` or `{"failed": errno}` for each request, in their order; `{"ended": pid, "status": s}` for
every runner, with the status as `subprocess` counts.
"""

from pydantic import BaseModel

LARGEST = 2**17
"""Bytes of a datagram."""
STREAMS = ("stdin", "stdout", "stderr", "events")


class ForkRequest(BaseModel):
    """What a forked runner gets: its folder, its whole environment, and the module that it runs."""

    folder: str
    environment: dict[str, str]
    module: str
