from typing import Any

from django.db import models


class Deletion(models.Model):
    """A deletion that can still be undone. Its rows stay in the database, hidden, until `until`.

    Every deleted row names its deletion, so a restore shows exactly the rows again that one deletion hid.
    """

    class Kind(models.TextChoices):
        PROJECT = "project", "project"
        DATASET = "dataset", "data set"
        EXPERIMENT = "experiment", "experiment"
        JOB = "job", "job"
        VERSION = "version", "model version"
        CODE = "code", "code"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    target = models.PositiveBigIntegerField(help_text="the primary key of the row that was chosen")
    label = models.CharField(max_length=300, help_text="what people call it")
    project = models.ForeignKey("jobs.Project", on_delete=models.CASCADE, related_name="deletions")
    lost = models.JSONField(default=list, help_text="[{what, count, bytes}], as shown before the deletion")
    bytes = models.PositiveBigIntegerField(default=0)
    by = models.ForeignKey("jobs.User", on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField()
    until = models.DateTimeField(db_index=True, help_text="end of the time in which it can be restored")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "target"], name="one_deletion_of_a_row")]

    def __str__(self) -> str:
        return f"deletion of {self.label}"


def deletion_key() -> Any:
    """Return the column for deletable rows: null, or the deletion that hides the row."""
    # RESTRICT: a deletion may only go together with its rows, or after a restore.
    return models.ForeignKey(Deletion, on_delete=models.RESTRICT, null=True, editable=False, related_name="+")


class VisibleManager[M: models.Model](models.Manager[M]):
    """Finds the rows that are not deleted. It is the manager `objects`, which relations use too.

    `everything` finds all rows: to number, restore and purge them, and to collect artifacts.
    """

    def get_queryset(self) -> models.QuerySet[M]:
        """Return the rows that are not deleted."""
        return super().get_queryset().filter(deletion=None)
