"""The Celery tasks. They pass a hint on to the node and are done: no work, no database, no state."""

import os

from jobs.queue import CANARY, SUGGEST, WAKE, app
from workers.node.hints import SOCKET_VARIABLE, Hint, Kind, send


def _pass_on(kind: Kind, value: int | str) -> None:
    send(os.environ[SOCKET_VARIABLE], Hint(kind, value))


@app.task(name=WAKE)  # type: ignore[untyped-decorator]
def wake(attempt_id: int) -> None:
    """An attempt of this node is new, or wanted otherwise."""
    _pass_on("wake", attempt_id)


@app.task(name=SUGGEST)  # type: ignore[untyped-decorator]
def suggest(job_id: int) -> None:
    """A search of this pool wants configurations."""
    _pass_on("suggest", job_id)


@app.task(name=CANARY)  # type: ignore[untyped-decorator]
def canary(token: str) -> None:
    """Proof that messages are consumed."""
    _pass_on("canary", token)
