"""Ends a search early: at a user's request, or after its `max_minutes`."""

from jobs import hints, queue
from jobs.actions.runs import events
from jobs.actions.runs.payloads import change_payload
from jobs.models import Job


def begin_early_end(root: Job, *, reason: str) -> None:
    """End a locked search with the trials that it has. The steps after it follow.

    Running trials write a checkpoint and stop; waiting ones are stopped by the next `pipeline.advance`.
    """
    change_payload(root, finishing=True)
    events.append(root.pk, [events.event("state", root, state=root.state, reason=reason)])
    for worker_id, attempt_id in root.attempts.open().values_list("worker_id", "pk"):
        queue.wake_worker(worker_id, attempt_id)
    hints.send("schedule", job=root.pk)
