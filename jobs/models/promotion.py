from typing import Self

from django.db import models

from jobs.models.job import Job
from jobs.models.people import User
from jobs.models.registry import ModelVersion, RegisteredModel
from jobs.spec.gates import GateRules


class GateRevision(models.Model):
    """One revision of the rules for a model's gates. Revisions are numbered and immutable."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="gate_revisions")
    number = models.PositiveIntegerField()
    rules_json = models.JSONField(db_column="rules", help_text="a jobs.spec.gates.GateRules")
    comment = models.TextField(blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="gate_revision_number")]

    def __str__(self) -> str:
        return f"gates of {self.model}, revision {self.number}"

    @property
    def rules(self) -> GateRules:
        """Return the rules."""
        return GateRules.model_validate(self.rules_json)


class PromotionRequestQuerySet(models.QuerySet["PromotionRequest"]):
    """Queries for promotion requests."""

    def open(self) -> Self:
        """Return the requests that can still be decided."""
        return self.filter(state__in=PromotionRequest.OPEN)


class PromotionRequest(models.Model):
    """A request to promote a version to a stage. Gates are evaluated, then another user decides."""

    class State(models.TextChoices):
        GATING = "gating", "gating"
        PENDING = "pending", "pending"
        APPROVED = "approved", "approved"
        RELEASED = "released", "released"
        FAILED = "failed", "failed"
        REJECTED = "rejected", "rejected"
        WITHDRAWN = "withdrawn", "withdrawn"
        EXPIRED = "expired", "expired"

    OPEN = frozenset({State.GATING, State.PENDING})
    """The states in which a request can still be decided, withdrawn, or expire."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="promotions")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="promotions")
    stage = models.CharField(max_length=10)
    state = models.CharField(max_length=10, choices=State.choices, default=State.GATING)
    comment = models.TextField(blank=True)
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    requested_by_issuers = models.ManyToManyField(
        User, related_name="+", help_text="the issuers of the session that opened it"
    )
    # Stored with the request, since the project's setting may change while the request is open.
    single_person = models.BooleanField(
        default=False, help_text="its requester may decide it; as the project was set when it was opened"
    )
    baseline_version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    baseline_generation = models.PositiveIntegerField(default=0)
    gates = models.JSONField(default=list)
    gate_revision = models.ForeignKey(
        GateRevision,
        on_delete=models.RESTRICT,
        null=True,
        related_name="+",
        help_text="the rules that applied when the request was made; null: the defaults",
    )
    gate_job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    generation = models.PositiveIntegerField(null=True, help_text="generation of the resulting release")
    expires = models.DateTimeField()
    created = models.DateTimeField(auto_now_add=True)
    decided = models.DateTimeField(null=True)

    objects = PromotionRequestQuerySet.as_manager()

    class Meta:
        # Few requests of all are pending, and every page asks for them.
        indexes = [models.Index(fields=["state"], name="promotions_by_state")]

    def __str__(self) -> str:
        return f"{self.version} to {self.stage}"


class Decision(models.Model):
    """A user's decision about a promotion request (approve, reject, withdraw) or a comment on it."""

    promotion = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="decisions")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=10)
    comment = models.TextField(blank=True)
    accept = models.JSONField(default=list)
    digest = models.CharField(max_length=64, help_text="digest of the version that was decided on")
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.verdict} by {self.user}"
