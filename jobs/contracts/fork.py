"""The protocol between a supervisor and a fork server: one JSON object per datagram.

The supervisor sends a `ForkRequest` with the file descriptors of `STREAMS`. The fork server sends
`{"ready": pid}` once; `{"forked": pid}` or `{"failed": errno}` for each request, in order; and
`{"ended": pid, "status": s}` for each runner, with the status as `subprocess` reports it.
"""

from pydantic import BaseModel

MAX_DATAGRAM = 2**17
"""The most bytes in a datagram."""
STREAMS = ("stdin", "stdout", "stderr", "events")


class ForkRequest(BaseModel):
    """A request for a forked runner: its folder, its entire environment and the module to run."""

    folder: str
    environment: dict[str, str]
    module: str
