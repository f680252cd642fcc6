from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce, Greatest

from jobs.models.artifact import Checkpoint
from jobs.models.attempt import Attempt
from jobs.models.choices import choices
from jobs.models.job import Job
from jobs.models.people import User
from jobs.states import TRIAL_FINAL, TrialState


class TrialQuerySet(models.QuerySet["Trial"]):
    """Queries for trials."""

    def unfinished(self) -> Self:
        """Return the trials that are not in a final state."""
        return self.exclude(state__in=TRIAL_FINAL)

    def running(self) -> Self:
        """Return the trials that are in training."""
        return self.filter(state=TrialState.RUNNING)

    def scored(self) -> Self:
        """Return the completed trials that have a score."""
        return self.filter(state=TrialState.COMPLETED, score__isnull=False)

    def not_held(self) -> Self:
        """Return the trials that do not belong to an open attempt, whose runner will train them."""
        holding = Attempt.objects.open().filter(job=OuterRef("job"), number=OuterRef("attempt"))
        return self.filter(~Exists(holding))

    def waiting(self) -> Self:
        """Return the queued trials that do not belong to an open attempt."""
        return self.filter(state=TrialState.QUEUED).not_held()


class ExecutionQuerySet(models.QuerySet["Execution"]):
    """Queries for executions."""

    def running(self) -> Self:
        """Return the executions that are in training."""
        return self.filter(state=TrialState.RUNNING)

    def incomplete(self) -> Self:
        """Return the executions that are not completed."""
        return self.exclude(state=TrialState.COMPLETED)

    def interrupt(self, to: TrialState) -> None:
        """End the running executions early. Each keeps the epochs up to its newest checkpoint, if any."""
        checkpoints = Checkpoint.objects.filter(trial=OuterRef("trial"), execution=OuterRef("number"))
        newest = checkpoints.order_by("-epoch").values("epoch")[:1]
        # Its row has the epochs of earlier rungs; only an execution that ends by itself reports its own.
        epochs = Greatest("epochs", Coalesce(Subquery(newest), 0))
        self.running().update(state=to, epochs=epochs)


class Trial(models.Model):
    """One configuration in a search. Its number and values never change, also if its attempt fails."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=choices(TrialState), default=TrialState.QUEUED.value)
    values = models.JSONField()
    values_digest = models.CharField(max_length=64)
    source = models.CharField(max_length=10, default="algorithm", help_text="algorithm, hand, or withdrawn")
    attempt = models.PositiveIntegerField(default=0, help_text="number of its newest attempt; 0: none")
    restarts = models.PositiveIntegerField(default=0)
    score = models.FloatField(null=True)
    std = models.FloatField(null=True)
    bracket = models.PositiveIntegerField(default=0, help_text="index of its Hyperband bracket")
    rung = models.PositiveIntegerField(default=0, help_text="number of promotions")
    epochs = models.PositiveIntegerField(null=True, help_text="last epoch of its rung; null: all epochs")
    until = models.PositiveIntegerField(
        null=True, help_text="last epoch of a completed trial that is continued"
    )
    rungs = models.JSONField(default=list, help_text="score at the end of each rung, oldest first")
    answered_by = models.ForeignKey(
        "self",
        # PROTECT would also prevent the deletion of the whole search.
        on_delete=models.RESTRICT,
        null=True,
        related_name="answers",
        help_text="the trial with equal values whose scores were copied; it was not trained",
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
        """Return whether it is paused because its rung has ended, and not because a user paused the job."""
        # At the end of a rung, its score is appended to `rungs`; a promotion then increases `rung`.
        return self.state == TrialState.PAUSED and len(self.rungs) > self.rung and self.until is None


class TrialDecision(models.Model):
    """Why a trial was promoted from a rung or was not, with the numbers behind the decision."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="decisions")
    rule = models.CharField(max_length=30, help_text="what decided, for example the search's algorithm")
    rung = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField(null=True)
    value = models.FloatField(null=True)
    saw = models.JSONField(default=dict, help_text="promoted, cutoff, of (number of trials)")
    time = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "rule", "rung"], name="one_decision_of_a_rule_and_rung")
        ]

    def __str__(self) -> str:
        return f"{self.rule} at rung {self.rung} of {self.trial}"


class Execution(models.Model):
    """One training of a trial. A completed execution is never run again."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="executions")
    number = models.PositiveIntegerField()
    repeat = models.PositiveIntegerField(default=1)
    # The held-out fold of a cross-validation; NULL without one.
    fold = models.PositiveIntegerField(null=True)
    state = models.CharField(max_length=10, choices=choices(TrialState), default=TrialState.QUEUED.value)
    seed = models.PositiveBigIntegerField()
    score = models.FloatField(null=True)
    best_epoch = models.PositiveIntegerField(null=True)
    epochs = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(default=dict)
    best = models.JSONField(
        default=list, help_text="with a pruner: each epoch at which the best value changed, and that value"
    )

    objects = ExecutionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "number"], name="execution_number")]
        indexes = [models.Index(fields=["trial", "state"], name="executions_by_state")]

    def __str__(self) -> str:
        return f"execution {self.number} of {self.trial}"

    @property
    def shown_state(self) -> str:
        """Return the displayed state: an execution that waits for an ended trial is stopped."""
        # A retry of the trial queues these executions again, so their rows keep the state.
        waits = self.state in (TrialState.QUEUED, TrialState.PAUSED)
        return TrialState.STOPPED.value if waits and self.trial.state in TRIAL_FINAL else self.state
