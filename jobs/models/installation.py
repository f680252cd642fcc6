from django.db import models

from jobs.messages.sandbox import DEFAULT_MINIMUM, Level
from jobs.models.choices import choices


class InstallationSettings(models.Model):
    """The identity of the installation, and settings of administrators. There is one row, or none yet."""

    sandbox_minimum = models.CharField(
        max_length=11,
        choices=choices(Level),
        default=DEFAULT_MINIMUM.value,
        help_text="the weakest level of sandbox at which code of users may run",
    )
    identity = models.CharField(
        max_length=32,
        blank=True,
        default="",
        help_text="distinguishes the installation from its copies; the artifact store has it too",
    )
    key = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="names the secret key; empty: not known yet",
    )
    program = models.CharField(
        max_length=50,
        blank=True,
        default="",
        help_text="the version of the program that prepared the database",
    )

    def __str__(self) -> str:
        return "settings of the installation"


class Lease(models.Model):
    """A named lease that one process in the installation holds at a time, such as the scheduler's."""

    name = models.CharField(max_length=50, primary_key=True)
    holder = models.CharField(max_length=200)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} by {self.holder}"


class Reachability(models.Model):
    """The time since which the database could be reached. There is one row, or none yet."""

    since = models.DateTimeField(help_text="since when schedulers have reached the database without a break")
    seen = models.DateTimeField(help_text="when a scheduler last reached the database")

    def __str__(self) -> str:
        return f"reached from {self.since} to {self.seen}"


class RunningTotal(models.Model):
    """How often something has happened since the installation began, for its metrics.

    It survives restarts, and the deletion of counted rows.
    """

    name = models.CharField(max_length=40)
    label = models.CharField(max_length=80, blank=True, help_text="the values of the metric's labels")
    value = models.BigIntegerField(default=0)
    changed = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="running_total_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.label}: {self.value}"
