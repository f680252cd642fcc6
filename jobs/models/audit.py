from django.db import models

from jobs.models.people import User
from jobs.models.project import Project


class AuditEvent(models.Model):
    """An audit log entry. Its hash covers all other fields, among them the previous entry's hash."""

    # Without gaps, unlike ids: a database may skip ids after a transaction that failed.
    number = models.PositiveBigIntegerField(unique=True)
    time = models.DateTimeField()
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=120)
    # The log outlives the project. The id stays, because the hash covers it; the slug is in `detail`.
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, null=True, related_name="+"
    )
    detail = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, unique=True)

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class WaitingAuditEvent(models.Model):
    """An entry for the audit log from a process without the secret key. A process that has it appends it."""

    time = models.DateTimeField()
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=120)
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, null=True, related_name="+"
    )
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class AuditHead(models.Model):
    """The audit chain's head: a single row, which is locked to append an entry."""

    number = models.PositiveBigIntegerField(default=0, help_text="of the last entry")
    hash = models.CharField(max_length=64, help_text="of the last entry")
    mac = models.CharField(max_length=64, help_text="authenticates number and hash; empty if they were wrong")
    key = models.CharField(max_length=16, help_text="names the secret key with which `mac` was made")

    def __str__(self) -> str:
        return self.hash[:12]
