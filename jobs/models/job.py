from typing import Self

from django.db import models

from jobs.models.choices import choices
from jobs.models.experiment import Experiment, Revision
from jobs.models.people import Project, User
from jobs.states import FINAL, Desired, JobKind, JobState


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs by place in their tree and by state."""

    def roots(self) -> Self:
        """Return the jobs without a parent."""
        return self.filter(parent=None)

    def unfinished(self) -> Self:
        """Return the jobs that are not in a final state."""
        return self.exclude(state__in=FINAL)


class Job(models.Model):
    """One unit of queued work. What follows a search are its children; the root numbers all events."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="jobs")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, null=True, related_name="jobs")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="jobs")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    root = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="family")
    kind = models.CharField(max_length=20, choices=choices(JobKind))
    ordinal = models.PositiveIntegerField(default=1, help_text="which of its kind under its parent")
    title = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=10, choices=choices(JobState), default=JobState.QUEUED.value)
    desired = models.CharField(max_length=10, choices=choices(Desired), default=Desired.RUNNING.value)
    payload = models.JSONField(default=dict, help_text="what to do, beside the revision's spec")
    pool = models.CharField(max_length=63, default="default")
    priority = models.PositiveSmallIntegerField(default=50)
    slots = models.PositiveIntegerField(default=1)
    max_restarts = models.PositiveIntegerField(default=5)
    restarts = models.PositiveIntegerField(default=0)
    fence = models.PositiveIntegerField(default=0, help_text="the newest attempt's number")
    why_waiting = models.CharField(max_length=500, blank=True)
    progress = models.JSONField(default=dict, help_text="done, total, unit, rate as the newest attempt said")
    results = models.JSONField(default=dict)
    warnings = models.JSONField(default=list, help_text="[{code, message}], as runners told, each once")
    error = models.JSONField(null=True)
    event_seq = models.PositiveBigIntegerField(default=0, help_text="the last cursor given out (roots only)")
    suggest_until = models.DateTimeField(null=True, help_text="lease of whoever makes suggestions")
    suggest_fence = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    queued = models.DateTimeField(null=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "kind", "ordinal"], name="one_child_of_a_kind_and_ordinal"
            )
        ]
        indexes = [
            models.Index(fields=["state", "pool", "-priority", "queued"]),
            models.Index(fields=["project", "-created"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_outside(self) -> bool:
        """Say whether scripts outside Trainyard run its trials: a search that no spec of ours describes."""
        return self.kind == JobKind.SEARCH and "outside" in self.payload

    @property
    def root_id_or_self(self) -> int:
        """Return the id of the job whose counter numbers this job's events."""
        return self.root_id or self.pk
