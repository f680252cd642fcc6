from typing import Self

from django.db import models

from jobs.models.choices import choices
from jobs.models.environment import PackageSet
from jobs.models.job import Job
from jobs.models.worker import Worker
from jobs.states import AttemptState


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Queries for attempts."""

    def open(self) -> Self:
        """Return the attempts that have not ended and occupy slots of their worker."""
        return self.exclude(state=AttemptState.ENDED)


class Attempt(models.Model):
    """One attempt to run a job, or some trials of a search. Its number is the fencing token."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    # Also trials that it no longer holds: `Trial.attempt` is the number of the attempt that holds a trial.
    trials = models.ManyToManyField("jobs.Trial", related_name="attempts")
    number = models.PositiveIntegerField()
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="attempts")
    slots = models.PositiveIntegerField()
    state = models.CharField(
        max_length=10, choices=choices(AttemptState), default=AttemptState.ASSIGNED.value
    )
    outcome = models.CharField(max_length=10, blank=True)
    lease_until = models.DateTimeField()
    resumed_from = models.PositiveBigIntegerField(
        null=True, help_text="step of the checkpoint that it resumed from"
    )
    record = models.JSONField(default=dict, help_text="reproducibility record")
    sandbox_json = models.JSONField(
        db_column="sandbox", null=True, help_text="the sandbox that it had; null: none"
    )
    packages = models.ForeignKey(
        PackageSet,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="the packages of its code; null: none, or not known yet",
    )
    error = models.JSONField(null=True)
    spool_acked = models.PositiveBigIntegerField(
        default=0, help_text="bytes of the spool that are recorded in the database"
    )
    event_rate = models.PositiveIntegerField(
        default=0, help_text="events a second of its run in the last seconds, for the project's quota"
    )
    preempted_for = models.ForeignKey(
        Job,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the waiting job of higher priority for which it was asked to free its slots",
    )
    assigned = models.DateTimeField()
    claimed = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    counted = models.BooleanField(default=False, help_text="whether its end is in the running totals")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="attempt_number")]
        # For the reaper, and for the poll of a worker.
        indexes = [
            models.Index(fields=["state", "lease_until"]),
            models.Index(fields=["worker", "state"]),
            # For the scheduler, which counts them every few seconds; nearly always empty.
            models.Index(
                fields=["id"],
                name="ended_and_not_counted",
                condition=models.Q(state=AttemptState.ENDED.value, counted=False),
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"
