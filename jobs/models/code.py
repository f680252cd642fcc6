from django.db import models

from jobs.messages.code import MAX_NAME, MAX_PATH, CodeFound
from jobs.models.artifact import Artifact
from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.people import User
from jobs.models.project import Project


class CodeVersion(models.Model):
    """An immutable set of source files, identified by one digest of their paths and contents."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="code")
    name = models.CharField(max_length=MAX_NAME, help_text="versions with one name follow each other")
    digest = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    found_json = models.JSONField(default=dict, db_column="found", help_text="the findings of the reader")
    summary_json = models.JSONField(
        default=dict, db_column="summary", help_text="what lists show of the findings, which may be large"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    deletion = deletion_key()

    objects: models.Manager["CodeVersion"] = VisibleManager()
    everything: models.Manager["CodeVersion"] = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "digest"], name="code_digest_in_project"),
        ]
        indexes = [models.Index(fields=["project", "name", "-id"], name="code_by_name")]

    def __str__(self) -> str:
        return f"{self.name} {self.digest[:8]}"

    @property
    def findings(self) -> CodeFound:
        """Return the findings, which were made without executing it."""
        return CodeFound.model_validate(self.found_json)

    @property
    def entry_names(self) -> list[str]:
        """Return the entries' names."""
        return list(self.summary_json.get("entries", ()))

    @property
    def problem_count(self) -> int:
        """Count the problems."""
        return int(self.summary_json.get("problems", 0))

    @property
    def has_packages(self) -> bool:
        """Return whether it lists packages that it needs."""
        return bool(self.summary_json.get("packages"))


class CodeFile(models.Model):
    """A file in a code version."""

    version = models.ForeignKey(CodeVersion, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=MAX_PATH, help_text="with / between folders")
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    lines = models.PositiveIntegerField(null=True, help_text="null: it is not text")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="code_path_in_version")]

    def __str__(self) -> str:
        return self.path
