"""An attempt while it lives. Every write names its attempt, whose number is the fence."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from jobs import clock, store
from jobs.actions import events, fence, runner_events
from jobs.contracts.events import RunnerEvent
from jobs.kinds import payload_of
from jobs.kinds.base import Payload
from jobs.models import Attempt
from jobs.states import AttemptState, Desired

LEASE_SECONDS = 15.0


def assigned_to(worker_id: int) -> list[Attempt]:
    """List the attempts placed on a worker that it has not claimed yet, oldest first."""
    rows = Attempt.objects.filter(worker_id=worker_id, state=AttemptState.ASSIGNED)
    return list(rows.select_related("job").order_by("assigned"))


def claim(attempt_id: int, *, worker_id: int) -> Attempt | None:
    """Take an assigned attempt: one row changes, or somebody else was faster and None comes back."""
    now = clock.now()
    claimed = Attempt.objects.filter(
        pk=attempt_id, worker_id=worker_id, state=AttemptState.ASSIGNED, lease_until__gt=now
    ).update(state=AttemptState.RUNNING, claimed=now, lease_until=clock.seconds_from_now(LEASE_SECONDS))
    return Attempt.objects.select_related("job").get(pk=attempt_id) if claimed else None


def renew(worker_id: int, attempt_ids: Sequence[int]) -> dict[int, Desired]:
    """Extend the leases of a worker's running attempts.

    Returns:
        For each attempt that is still the worker's own, what is wanted of it: the same as of its job, and
        to stop once its search has given up. The runner of an attempt that is missing from the answer
        must be killed at once.
    """
    mine = Attempt.objects.filter(pk__in=attempt_ids, worker_id=worker_id, state=AttemptState.RUNNING)
    mine.update(lease_until=clock.seconds_from_now(LEASE_SECONDS))
    rows = mine.values_list("pk", "job__desired", "job__kind", "job__payload_json")
    return {pk: _wanted(Desired(desired), payload_of(kind, payload)) for pk, desired, kind, payload in rows}


def _wanted(of_job: Desired, payload: Payload) -> Desired:
    gives_up = of_job is Desired.RUNNING and payload.failing is not None
    return Desired.STOPPED if gives_up else of_job


def record(
    attempt_id: int,
    batch: Sequence[RunnerEvent],
    *,
    spool_position: int,
    stored: Mapping[str, store.StoredFile],
) -> None:
    """Write what a runner said, all or nothing.

    Args:
        attempt_id: the attempt.
        batch: its events in order.
        spool_position: bytes of the spool that this batch ends at; a batch already written is skipped.
        stored: for each `artifact` event's path, the file as it now lies in the store.

    Raises:
        StaleFence: the attempt is no longer running; nothing was written.
    """
    with transaction.atomic():
        attempt = fence.acknowledge(attempt_id, spool_position)
        if attempt is not None:  # else an earlier call has written it, whose answer was lost
            events.append(attempt.job.root_id_or_self, runner_events.take_in(attempt, batch, stored))
