from typing import Self

from django.db import models


class Artifact(models.Model):
    """A file in the artifact store, identified by its sha256 digest. Equal files are stored once."""

    digest = models.CharField(max_length=64, primary_key=True)
    bytes = models.PositiveBigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    stored = models.DateTimeField(
        auto_now_add=True, help_text="when a file with this content was last stored"
    )

    def __str__(self) -> str:
        return self.digest[:12]


class JobArtifact(models.Model):
    """A job's output: an artifact with a role and a name."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="artifacts")
    trial = models.ForeignKey("jobs.Trial", on_delete=models.CASCADE, null=True, related_name="artifacts")
    attempt = models.PositiveIntegerField()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="uses")
    role = models.CharField(max_length=40)
    name = models.CharField(max_length=200)
    meta = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempt", "role", "name"], name="artifact_once_an_attempt"
            )
        ]

    def __str__(self) -> str:
        return self.name


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    """Queries for checkpoints."""

    def kept(self) -> Self:
        """Return the checkpoints that retention has not deleted."""
        return self.filter(removed=None)


class Checkpoint(models.Model):
    """A committed checkpoint folder. A restore uses the newest whose manifest is valid."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="checkpoints")
    trial = models.ForeignKey("jobs.Trial", on_delete=models.CASCADE, null=True, related_name="checkpoints")
    execution = models.PositiveIntegerField(null=True)
    attempt = models.PositiveIntegerField()
    step = models.PositiveBigIntegerField()
    epoch = models.PositiveIntegerField()
    folder = models.CharField(max_length=500, help_text="relative to the store's checkpoint root")
    manifest = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    removed = models.DateTimeField(null=True, help_text="when retention deleted the folder")
    stored = models.DateTimeField(
        null=True, help_text="when its copy in object storage was complete; null: there is none"
    )
    created = models.DateTimeField(auto_now_add=True)

    objects = CheckpointQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "folder"], name="checkpoint_folder_once")]
        indexes = [
            models.Index(fields=["job", "trial", "execution", "-step"]),
            # Few of a long training's rows have a copy.
            models.Index(
                fields=["job"], name="checkpoints_with_copies", condition=models.Q(stored__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step}"
