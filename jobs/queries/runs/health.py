"""Reports whether the scheduler and the workers are alive, by their leases."""

from jobs import clock
from jobs.models import Lease, Worker

SCHEDULER_LEASE = "scheduler"


def scheduler_is_alive() -> bool:
    """Return whether a scheduler holds the lease."""
    return Lease.objects.filter(name=SCHEDULER_LEASE, until__gt=clock.estimate()).exists()


def worker_is_alive() -> bool:
    """Return whether any worker accepts new attempts."""
    return Worker.objects.live().exists()
