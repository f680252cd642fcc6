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


def worker_names() -> list[str]:
    """Return the names and hosts of all workers that have a lease, also of those that end."""
    states = [Worker.State.UP, Worker.State.DRAINING]
    rows = Worker.objects.filter(state__in=states, lease_until__gt=clock.now()).order_by("pk")
    return [f"{row.name} on {row.host}" for row in rows]
