from django.db import models

from jobs.models.people import User
from jobs.models.promotion import PromotionRequest
from jobs.models.registry import ModelVersion, RegisteredModel


class Endpoint(models.Model):
    """The served versions of a model. Each change increments `generation` by compare-and-set."""

    model = models.OneToOneField(RegisteredModel, on_delete=models.CASCADE, related_name="endpoint")
    production = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    previous = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    staging = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    # Prediction servers refuse a release whose generation is not higher than that of their newest one.
    generation = models.PositiveIntegerField(default=0)
    is_down = models.BooleanField(
        default=False, help_text="no version is served, though the stages keep theirs"
    )

    def __str__(self) -> str:
        return self.model.name


class ReleaseRecord(models.Model):
    """A signed release. Releases are never deleted; they are an endpoint's history."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="releases")
    generation = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, help_text="promote, rollback, stage, take_down, bring_up or label")
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="releases")
    replaced = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    promotion = models.ForeignKey(
        PromotionRequest, on_delete=models.SET_NULL, null=True, related_name="releases"
    )
    reason = models.TextField(blank=True)
    body = models.JSONField(help_text="a jobs.messages.release.SignedRelease")
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "generation"], name="release_generation")]

    def __str__(self) -> str:
        return f"{self.endpoint} generation {self.generation}"


class Replica(models.Model):
    """The last report from a prediction server about an endpoint."""

    name = models.CharField(max_length=200)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="replicas")
    generation = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict)
    # Counts of requests are added only if (run, sequence) is greater, so a repeated report adds nothing.
    run = models.BigIntegerField(default=0, help_text="start of the server in the last report with counts")
    sequence = models.BigIntegerField(default=0, help_text="the last report with counts of this run")
    seen = models.DateTimeField()
    stopped = models.BooleanField(default=False, help_text="its last report was that it stops")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "endpoint"], name="replica_of_endpoint")]

    def __str__(self) -> str:
        return self.name
