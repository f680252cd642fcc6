"""Locks jobs in the order that all transactions have in common: a root before its steps.

A change to a step appends an event, which locks the root. A request to stop or pause a root changes its
steps. If one locked the step first and the other the root, each would wait for the other.
"""

from jobs.models import Job


def lock_root(job: Job) -> None:
    """Lock a step's root until the transaction ends. Nothing is done for a root itself.

    Raises:
        Job.DoesNotExist: the root was deleted.
    """
    if job.root_id is not None:
        Job.objects.locked().only("pk").get(pk=job.root_id)


def locked_with_root(job_id: int) -> Job:
    """Return a job that is locked, with its root, until the transaction ends."""
    job = Job.objects.only("root").get(pk=job_id)
    lock_root(job)
    return Job.objects.locked().get(pk=job_id)
