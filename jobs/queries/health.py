"""Says which processes of the installation hold their leases."""

from jobs import clock
from jobs.models import Lease, Worker

SCHEDULER_LEASE = "scheduler"


def scheduler_is_alive() -> bool:
    """Say whether a scheduler holds the lease."""
    return Lease.objects.filter(name=SCHEDULER_LEASE, until__gt=clock.estimate()).exists()


def worker_is_alive() -> bool:
    """Say whether any worker takes new work."""
    return Worker.objects.live().exists()
