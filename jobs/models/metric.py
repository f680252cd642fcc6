from django.db import models

from jobs.models.job import Job
from jobs.models.trial import Trial


class MetricSeries(models.Model):
    """One metric of one execution, or else one job without trials, in one attempt."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="series")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, null=True, related_name="series")
    execution = models.PositiveIntegerField(default=0, help_text="0: not part of an execution")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    x = models.CharField(max_length=10, default="epoch")
    count = models.PositiveBigIntegerField(default=0)
    last_x = models.FloatField(null=True)
    last_value = models.FloatField(null=True)
    loose = models.PositiveIntegerField(
        default=0, help_text="number of newest chunks that are not merged yet"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "execution", "attempt", "name"], name="one_series_of_a_trial"
            ),
            # Needed in addition: values of NULL differ from each other in the constraint above.
            models.UniqueConstraint(
                fields=["job", "execution", "attempt", "name"],
                condition=models.Q(trial=None),
                name="one_series_of_a_job",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class MetricChunk(models.Model):
    """A few thousand points of a series as compressed float64 columns: x, value, time."""

    series = models.ForeignKey(MetricSeries, on_delete=models.CASCADE, related_name="chunks")
    first_x = models.FloatField()
    last_x = models.FloatField()
    count = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["series", "first_x"])]

    def __str__(self) -> str:
        return f"{self.count} points of {self.series_id}"
