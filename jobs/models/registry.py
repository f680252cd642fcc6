from django.db import models

from jobs.messages.release import identity_of
from jobs.models.artifact import Artifact
from jobs.models.code import CodeVersion
from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.digests import text_digest
from jobs.models.environment import PackageSet
from jobs.models.job import Job
from jobs.models.people import User
from jobs.models.project import Project


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
        """Return the description's digest, which is the model's ETag."""
        return text_digest(self.description)


class ModelVersion(models.Model):
    """A numbered, immutable model version, identified by its file and the code that the file needs."""

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
    code = models.ForeignKey(
        CodeVersion,
        on_delete=models.PROTECT,
        null=True,
        related_name="model_versions",
        help_text="the code that came with the file, or that made it",
    )
    needs_code = models.BooleanField(
        default=False, help_text="the file cannot be loaded without the code; its validation finds out"
    )
    requirements_digest = models.CharField(
        max_length=64, blank=True, help_text="of the packages that the code asks for; empty for none"
    )
    packages = models.ForeignKey(
        PackageSet,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="the packages with which it was trained, or validated if it was uploaded",
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
    def needed_code(self) -> CodeVersion | None:
        """Return the code without which the file cannot be loaded; None if it can."""
        return self.code if self.needs_code else None

    @property
    def identity(self) -> str:
        """Return one digest for weights, code and packages, to which approvals and releases are bound."""
        code = self.needed_code
        return identity_of(
            self.artifact_id,
            code.digest if code else None,
            self.requirements_digest,
            packages=self.packages_id or "",
        )

    @property
    def card_digest(self) -> str:
        """Return the card's digest, which is its ETag."""
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
