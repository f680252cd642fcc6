"""Claims attempts, renews their leases and records their events, under the attempt's fencing token."""

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import BigIntegerField

from jobs import clock, store
from jobs.actions.job_locks import lock_root
from jobs.actions.runs import events, fence, runner_events
from jobs.kinds import payload_of
from jobs.messages.events import RunnerEvent
from jobs.messages.lease import LEASE_SECONDS
from jobs.models import Attempt, Worker
from jobs.prepared import Parameter, PreparedQuery
from jobs.states import AttemptState, Desired

# Each worker asks for them all the time.
_ASSIGNED = PreparedQuery(
    lambda: (
        Attempt.objects.filter(worker=Parameter("worker", BigIntegerField()), state=AttemptState.ASSIGNED)
        .select_related("job")
        .order_by("assigned")
    )
)


def assigned_to(worker_id: int) -> list[Attempt]:
    """List the attempts placed on a worker that it has not claimed yet, oldest first."""
    return _ASSIGNED.rows(worker=worker_id)


def claim(attempt_id: int, *, worker_id: int, process: str = "") -> Attempt | None:
    """Claim an assigned attempt by compare-and-set. Return None if it is no longer claimable.

    Args:
        attempt_id: the attempt.
        worker_id: the worker's key.
        process: with which the worker was registered; empty: without one.
    """
    now = clock.now()
    claimed = Attempt.objects.filter(
        pk=attempt_id,
        # Not a join: a subquery over attempts would not be compared again after a wait for the row's lock.
        worker__in=Worker.objects.filter(pk=worker_id, process=process),
        state=AttemptState.ASSIGNED,
        lease_until__gt=now,
    ).update(state=AttemptState.RUNNING, claimed=now, lease_until=clock.seconds_from_now(LEASE_SECONDS))
    return Attempt.objects.select_related("job").get(pk=attempt_id) if claimed else None


def renew(worker_id: int, attempt_ids: Sequence[int], *, process: str = "") -> dict[int, Desired]:
    """Extend the leases of a worker's running attempts.

    Args:
        worker_id: the worker's key.
        attempt_ids: the attempts.
        process: with which the worker was registered; empty: without one.

    Returns:
        The desired state of each attempt that the worker still holds: that of its job, `stopped` once its
        search has failed or is being finished, or `paused` if it makes room for a job of higher priority. The
        worker must kill the runner of an attempt that is missing here.
    """
    own = Worker.objects.filter(pk=worker_id, process=process)
    held = Attempt.objects.filter(pk__in=attempt_ids, worker__in=own, state=AttemptState.RUNNING)
    held.update(lease_until=clock.seconds_from_now(LEASE_SECONDS))
    answer = {}
    # Read after the update: an attempt that ended in between is missing from the answer.
    columns = ("pk", "job__desired", "job__kind", "job__payload_json", "preempted_for")
    for pk, desired, kind, body, preempted_for in held.values_list(*columns):
        payload = payload_of(kind, body)
        if desired == Desired.RUNNING and (payload.failing is not None or payload.finishing):
            answer[pk] = Desired.STOPPED
        elif desired == Desired.RUNNING and preempted_for is not None:
            answer[pk] = Desired.PAUSED
        else:
            answer[pk] = Desired(desired)
    return answer


def record_events(
    attempt_id: int,
    batch: Sequence[RunnerEvent],
    *,
    spool_position: int,
    stored: Mapping[str, store.StoredFile],
    by: fence.Holder | None = None,
) -> None:
    """Write a batch of events from a runner to the database, all or nothing.

    Args:
        attempt_id: the attempt.
        batch: its events in order.
        spool_position: the offset in the spool, in bytes, at which the batch ends. A batch that was already
            written is skipped.
        stored: the stored file of each `artifact` event, by the event's path.
        by: who writes; None: not a worker.

    Raises:
        StaleFence: the attempt is no longer running, or not held; nothing was written.
    """
    with transaction.atomic():
        acknowledged = fence.acknowledge_batch(attempt_id, spool_position, by)
        # None: an earlier call, whose answer was lost, has written the batch.
        if acknowledged is not None:
            attempt, phase = acknowledged
            lock_root(attempt.job)
            recorded = runner_events.record_events(attempt, batch, stored, phase=phase)
            events.append(attempt.job.root_id_or_self, *recorded)
