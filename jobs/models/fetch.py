from django.db import models

from jobs.models.dataset import DatasetVersion
from jobs.models.people import User
from jobs.models.project import Project


class Credential(models.Model):
    """A secret with which a project's data are fetched. It is never shown; a deleted one is gone."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="credentials")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=10)
    place = models.CharField(max_length=500, blank=True, help_text="where it is used, for people")
    sealed = models.TextField(help_text="all fields, encrypted with the secret key of the installation")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="credential_name_in_project")]

    def __str__(self) -> str:
        return self.name


class Fetch(models.Model):
    """Copies a dataset version's file from an address into the store.

    A process holds it by a lease, and each attempt has another fence: a process that lost its lease can
    neither report progress nor complete the version.
    """

    class Mode(models.TextChoices):
        COPY = "copy", "copy"
        REFERENCE = "reference", "reference"

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"

    version = models.OneToOneField(DatasetVersion, on_delete=models.CASCADE, related_name="fetch")
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.COPY)
    shown = models.TextField(help_text="the address without its query")
    sealed_url = models.TextField(help_text="the whole address, encrypted: its query may contain a signature")
    credential = models.ForeignKey(Credential, on_delete=models.SET_NULL, null=True, related_name="+")
    credential_name = models.CharField(max_length=63, blank=True, help_text="empty: without a credential")
    expected_sha256 = models.CharField(max_length=64, blank=True)
    unchanged_since = models.CharField(
        max_length=100, blank=True, help_text="the version whose file has the expected digest"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING, db_index=True)
    fence = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="since a person last asked for it")
    until = models.DateTimeField(null=True, help_text="end of the lease of the process that fetches it")
    started = models.DateTimeField(null=True)
    received = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, help_text="bytes that the source announced")
    reserved = models.PositiveBigIntegerField(default=0, help_text="bytes counted against the disk quota")
    etag = models.CharField(max_length=200, blank=True)
    modified = models.CharField(max_length=64, blank=True, help_text="as the source gives it")
    sha256 = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"fetch of {self.version}"
