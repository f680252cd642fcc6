from django.db import models

from jobs.models.job import Job


class Analysis(models.Model):
    """A cached analysis of a search's trials, and how many trials it is based on."""

    class Kind(models.TextChoices):
        IMPORTANCE = "importance", "importance"

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="analyses")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    trials = models.PositiveIntegerField(default=0, help_text="number of completed trials that were analysed")
    result = models.JSONField(null=True)
    error = models.CharField(max_length=500, blank=True)
    failed_at = models.PositiveIntegerField(default=0, help_text="number of completed trials at the error")
    until = models.DateTimeField(null=True, help_text="end of the lease of the process that computes it")
    fence = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "kind"], name="one_analysis_of_a_kind")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job_id}"
