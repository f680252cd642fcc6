"""Celery tasks that forward wake-up hints to the node. They are no tasks of runners (`jobs.messages.task`).

They do no work and hold no state: a message that is lost or delivered twice changes nothing.
"""

import os

from jobs.queue import CANARY, SUGGEST, WAKE, app
from workers.node.hints import SOCKET_VARIABLE, Hint, HintKind, send


def _forward(kind: HintKind, value: int | str) -> None:
    send(os.environ[SOCKET_VARIABLE], Hint(kind, value))


@app.task(name=WAKE)  # type: ignore[untyped-decorator]
def wake(attempt_id: int) -> None:
    """Notify the node that an attempt was assigned, or that its desired state changed."""
    _forward("wake", attempt_id)


@app.task(name=SUGGEST)  # type: ignore[untyped-decorator]
def suggest(job_id: int) -> None:
    """Notify a node of the pool that a search needs suggestions."""
    _forward("suggest", job_id)


@app.task(name=CANARY)  # type: ignore[untyped-decorator]
def canary(token: str) -> None:
    """Return a canary to the node, which proves that messages are consumed."""
    _forward("canary", token)
