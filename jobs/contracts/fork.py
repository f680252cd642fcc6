"""The protocol of fork servers: one JSON object per datagram.

A request comes with the file descriptors of the child. A supervisor of runners sends a `ForkRequest` with
those of `STREAMS`; the prediction server sends `{}` with one socket. The fork server sends `{"ready": pid}`
once; `{"forked": pid}` or `{"failed": errno}` for each request, in order; and `{"ended": pid, "status": s}`
for each child that belongs to it, with the status as `subprocess` reports it.
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
