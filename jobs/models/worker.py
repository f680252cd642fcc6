import datetime as dt
from typing import Self

from django.db import models
from django.db.models import Expression, Q

from jobs import clock


class WorkerQuerySet(models.QuerySet["Worker"]):
    """Queries for workers."""

    def live(self, pool: str | None = None) -> Self:
        """Return the workers that accept work, in one pool or in all pools."""
        # The lease is checked too, since `state` changes only at the scheduler's next sweep.
        rows = self.live_at(clock.estimate())
        return rows if pool is None else rows.filter(pool=pool)

    def live_at(self, now: dt.datetime | Expression) -> Self:
        """Return the workers that accept work at a time by the database's clock."""
        return self.filter(state=Worker.State.UP, lease_until__gt=now)


class Worker(models.Model):
    """A worker machine, which supervises runners. Its heartbeat renews `lease_until`."""

    class State(models.TextChoices):
        UP = "up", "up"
        DRAINING = "draining", "draining"
        LOST = "lost", "lost"
        GONE = "gone", "gone"

    # Unique among live workers only: a node that was started again is a new worker.
    name = models.CharField(max_length=200)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    pool = models.CharField(max_length=63, default="default", db_index=True)
    labels = models.JSONField(default=dict, help_text="{name: value}; jobs may ask for them")
    slots = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.UP)
    lease_until = models.DateTimeField()
    devices = models.JSONField(default=list, help_text="[{name, kind, memory_bytes, memory_used, load}]")
    info = models.JSONField(default=dict, help_text="versions, cpu, memory, consumer health")
    started = models.DateTimeField(auto_now_add=True)
    process = models.CharField(
        max_length=32,
        default="",
        blank=True,
        help_text="random, one for each start: identifies a repeated call",
    )

    objects = WorkerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(state__in=("up", "draining")), name="one_live_worker_of_a_name"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def refusal(self) -> str:
        """Return why it takes no work until its machine is repaired; empty if it takes some."""
        return str(self.info.get("refuses", ""))

    @property
    def device_names(self) -> tuple[str, ...]:
        """Return its devices' names, such as `gpu:0`."""
        return tuple(device["name"] for device in self.devices)
