from django.db import models


class RunningTotal(models.Model):
    """How often something has happened since the installation began, for its metrics.

    It survives restarts, and deletions of what was counted.
    """

    name = models.CharField(max_length=40)
    label = models.CharField(max_length=80, blank=True, help_text="the values of the metric's labels")
    value = models.BigIntegerField(default=0)
    changed = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="running_total_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.label}: {self.value}"
