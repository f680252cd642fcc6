from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef

from jobs.models.attempt import Attempt
from jobs.models.choices import choices
from jobs.models.job import Job
from jobs.models.people import User
from jobs.states import TRIAL_FINAL, TrialState


class TrialQuerySet(models.QuerySet["Trial"]):
    """Trials by state, and by whether an attempt holds them."""

    def unfinished(self) -> Self:
        """Return the trials that are not in a final state."""
        return self.exclude(state__in=TRIAL_FINAL)

    def running(self) -> Self:
        """Return the trials that a runner trains now."""
        return self.filter(state=TrialState.RUNNING)

    def scored(self) -> Self:
        """Return the completed trials that have a score."""
        return self.filter(state=TrialState.COMPLETED, score__isnull=False)

    def not_held(self) -> Self:
        """Leave out the trials of an attempt that has not ended: its runner will turn to them."""
        holding = Attempt.objects.open().filter(job=OuterRef("job"), number=OuterRef("attempt"))
        return self.filter(~Exists(holding))

    def waiting(self) -> Self:
        """Return the queued trials that no attempt holds."""
        return self.filter(state=TrialState.QUEUED).not_held()


class ExecutionQuerySet(models.QuerySet["Execution"]):
    """Executions by state."""

    def running(self) -> Self:
        """Return the executions that train now."""
        return self.filter(state=TrialState.RUNNING)

    def incomplete(self) -> Self:
        """Return the executions that did not train to their end."""
        return self.exclude(state=TrialState.COMPLETED)


class Trial(models.Model):
    """One configuration of a search. It keeps its number and values whatever dies."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=choices(TrialState), default=TrialState.QUEUED.value)
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

    objects = TrialQuerySet.as_manager()

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
    state = models.CharField(max_length=10, choices=choices(TrialState), default=TrialState.QUEUED.value)
    seed = models.PositiveBigIntegerField()
    score = models.FloatField(null=True)
    best_epoch = models.PositiveIntegerField(null=True)
    epochs = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(default=dict)
    best = models.JSONField(
        default=list, help_text="under a pruner: each epoch at which the objective was best, and its value"
    )

    objects = ExecutionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "number"], name="execution_number")]
        indexes = [models.Index(fields=["trial", "state"], name="executions_by_state")]

    def __str__(self) -> str:
        return f"execution {self.number} of {self.trial}"
