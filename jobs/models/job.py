from typing import Any

from django.db import models

from jobs.models.experiment import Experiment, Revision
from jobs.models.people import Project, User
from jobs.states import AttemptState, Desired, JobKind, JobState, TrialState


def _choices(enum: Any) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in enum]


class Worker(models.Model):
    """A node that supervises runners. `lease_until` is renewed by its heartbeat."""

    class State(models.TextChoices):
        UP = "up", "up"
        DRAINING = "draining", "draining"
        LOST = "lost", "lost"
        GONE = "gone", "gone"

    name = models.CharField(max_length=200)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    pool = models.CharField(max_length=63, default="default", db_index=True)
    slots = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.UP)
    lease_until = models.DateTimeField()
    devices = models.JSONField(default=list, help_text="[{name, kind, memory_bytes, memory_used, load}]")
    info = models.JSONField(default=dict, help_text="versions, cpu, memory, consumer health")
    started = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Job(models.Model):
    """One unit of queued work. What follows a search are its children; the root numbers all events."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="jobs")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, null=True, related_name="jobs")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="jobs")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    root = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="family")
    kind = models.CharField(max_length=20, choices=_choices(JobKind))
    ordinal = models.PositiveIntegerField(default=1, help_text="which of its kind under its parent")
    title = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=10, choices=_choices(JobState), default=JobState.QUEUED.value)
    desired = models.CharField(max_length=10, choices=_choices(Desired), default=Desired.RUNNING.value)
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


class Trial(models.Model):
    """One configuration of a search. It keeps its number and values whatever dies."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=_choices(TrialState), default=TrialState.QUEUED.value)
    values = models.JSONField()
    values_digest = models.CharField(max_length=64)
    source = models.CharField(max_length=10, default="algorithm", help_text="algorithm, hand, or withdrawn")
    attempt = models.PositiveIntegerField(default=0, help_text="the fence of its newest attempt; 0 before")
    restarts = models.PositiveIntegerField(default=0)
    score = models.FloatField(null=True)
    std = models.FloatField(null=True)
    bracket = models.PositiveIntegerField(default=0, help_text="which bracket of Hyperband it belongs to")
    rung = models.PositiveIntegerField(default=0, help_text="how often it was promoted")
    epochs = models.PositiveIntegerField(null=True, help_text="where its rung ends; null: trains to the end")
    until = models.PositiveIntegerField(null=True, help_text="where it ends that went on once completed")
    rungs = models.JSONField(default=list, help_text="its score at the end of each rung, oldest first")
    answered_by = models.ForeignKey(
        "self",
        on_delete=models.RESTRICT,  # PROTECT would keep a whole search from being deleted
        null=True,
        related_name="answers",
        help_text="the trial of the same values whose scores it has; it was not trained",
    )
    error = models.JSONField(null=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="trial_number")]
        indexes = [
            models.Index(fields=["job", "state", "score"], name="trials_by_score"),
            models.Index(fields=["job", "finished"], name="trials_by_end"),
            models.Index(fields=["job"], name="trials_by_hand", condition=models.Q(source="hand")),
        ]

    def __str__(self) -> str:
        return f"trial {self.number} of {self.job_id}"

    @property
    def waits_at_rung(self) -> bool:
        """Say whether it stands at the end of its rung; else, if it is paused, somebody paused the job."""
        return self.state == TrialState.PAUSED and len(self.rungs) > self.rung and self.until is None


class TrialDecision(models.Model):
    """Why a trial went on from a rung or did not, in the numbers that were seen. Written once."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="decisions")
    rule = models.CharField(max_length=30, help_text="what decided: the search's algorithm, say")
    rung = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField(null=True)
    value = models.FloatField(null=True)
    saw = models.JSONField(default=dict, help_text="promoted, cutoff, of (how many trials)")
    time = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "rule", "rung"], name="one_decision_of_a_rule_and_rung")
        ]

    def __str__(self) -> str:
        return f"{self.rule} at rung {self.rung} of {self.trial}"


class Execution(models.Model):
    """One training of a trial. Finished ones are never run again."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="executions")
    number = models.PositiveIntegerField()
    repeat = models.PositiveIntegerField(default=1)
    fold = models.PositiveIntegerField(null=True)  # what a cross-validation holds out here
    state = models.CharField(max_length=10, choices=_choices(TrialState), default=TrialState.QUEUED.value)
    seed = models.PositiveBigIntegerField()
    score = models.FloatField(null=True)
    best_epoch = models.PositiveIntegerField(null=True)
    epochs = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(default=dict)
    best = models.JSONField(
        default=list, help_text="under a pruner: each epoch at which the objective was best, and its value"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "number"], name="execution_number")]
        indexes = [models.Index(fields=["trial", "state"], name="executions_by_state")]

    def __str__(self) -> str:
        return f"execution {self.number} of {self.trial}"


class Attempt(models.Model):
    """One try at a job, or at some trials of a search. Holds the lease; its number is the fence."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    trials = models.ManyToManyField(Trial, related_name="attempts")
    number = models.PositiveIntegerField()
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="attempts")
    slots = models.PositiveIntegerField()
    state = models.CharField(
        max_length=10, choices=_choices(AttemptState), default=AttemptState.ASSIGNED.value
    )
    outcome = models.CharField(max_length=10, blank=True)
    lease_until = models.DateTimeField()
    resumed_from = models.PositiveBigIntegerField(
        null=True, help_text="step of the checkpoint it went on from"
    )
    record = models.JSONField(default=dict, help_text="reproducibility record")
    error = models.JSONField(null=True)
    spool_acked = models.PositiveBigIntegerField(
        default=0, help_text="bytes of the spool already in the database"
    )
    assigned = models.DateTimeField()
    claimed = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="attempt_number")]
        indexes = [models.Index(fields=["state", "lease_until"]), models.Index(fields=["worker", "state"])]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"


class Lease(models.Model):
    """A named right held by one process at a time, such as being the scheduler."""

    name = models.CharField(max_length=50, primary_key=True)
    holder = models.CharField(max_length=200)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} by {self.holder}"
