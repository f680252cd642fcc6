from django.db import models

from jobs.contracts.gates import GateRules
from jobs.models.artifact import Artifact
from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.digests import text_digest
from jobs.models.job import Job
from jobs.models.people import Project, User


class RegisteredModel(models.Model):
    """A named model, unique in the installation, with one endpoint."""

    name = models.SlugField(max_length=63, unique=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="models")
    description = models.TextField(blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    last_number = models.PositiveIntegerField(
        default=0, help_text="the highest number of a deleted version: numbers are never used again"
    )
    deletion = deletion_key()

    objects: models.Manager["RegisteredModel"] = VisibleManager()
    everything: models.Manager["RegisteredModel"] = models.Manager()

    def __str__(self) -> str:
        return self.name

    @property
    def description_digest(self) -> str:
        """Return a digest of the description, which is the model's ETag."""
        return text_digest(self.description)


class ModelVersion(models.Model):
    """A numbered, immutable version of a model, identified by the digest of its artifact."""

    class State(models.TextChoices):
        VALIDATING = "validating", "validating"
        CANDIDATE = "candidate", "candidate"
        INVALID = "invalid", "invalid"

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="versions")
    state = models.CharField(max_length=10, choices=State.choices, default=State.VALIDATING)
    what = models.CharField(max_length=20, blank=True, help_text="best, ensemble, quantized or uploaded")
    metrics = models.JSONField(default=dict)
    signature = models.JSONField(default=dict)
    class_labels = models.JSONField(default=list)
    lineage = models.JSONField(
        default=dict, help_text="data set, experiment and job that produced the version"
    )
    card = models.TextField(blank=True)
    error = models.JSONField(null=True)
    source_job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="versions")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    deletion = deletion_key()

    objects: models.Manager["ModelVersion"] = VisibleManager()
    everything: models.Manager["ModelVersion"] = models.Manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="model_version_number")]

    def __str__(self) -> str:
        return f"{self.model} v{self.number}"

    @property
    def card_digest(self) -> str:
        """Return a digest of the card, which is its ETag."""
        return text_digest(self.card)


class Alias(models.Model):
    """A name for a version, which can be moved to another version."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="aliases")
    name = models.SlugField(max_length=63)
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="aliases")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_of_model")]

    def __str__(self) -> str:
        return self.name


class Endpoint(models.Model):
    """The versions of a model that are served. Each change increments `generation` by compare-and-set."""

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


class GateRevision(models.Model):
    """The rules of a model's gates from one change on. Revisions are numbered and immutable."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="gate_revisions")
    number = models.PositiveIntegerField()
    rules_json = models.JSONField(db_column="rules", help_text="a jobs.contracts.gates.GateRules")
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


class ReleaseRecord(models.Model):
    """A signed release. Releases are never deleted; they are the history of an endpoint."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="releases")
    generation = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, help_text="promote, rollback, stage, take_down, bring_up or label")
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="releases")
    replaced = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    promotion = models.ForeignKey(
        PromotionRequest, on_delete=models.SET_NULL, null=True, related_name="releases"
    )
    reason = models.TextField(blank=True)
    body = models.JSONField(help_text="a jobs.contracts.release.SignedRelease")
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "generation"], name="release_generation")]

    def __str__(self) -> str:
        return f"{self.endpoint} generation {self.generation}"


class Replica(models.Model):
    """The last report of a prediction server about an endpoint."""

    name = models.CharField(max_length=200)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="replicas")
    generation = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict)
    # Counts of requests are added only if (run, sequence) is greater, so a repeated report adds nothing.
    run = models.BigIntegerField(default=0, help_text="start of the server in the last report with counts")
    sequence = models.BigIntegerField(default=0, help_text="the last report with counts of this run")
    seen = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "endpoint"], name="replica_of_endpoint")]

    def __str__(self) -> str:
        return self.name
