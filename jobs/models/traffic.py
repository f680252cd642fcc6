from django.db import models

from jobs.messages.traffic import Counts
from jobs.models.endpoint import Replica


class TrafficCount(models.Model):
    """The requests that one version answered at one prediction server in one interval."""

    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="traffic")
    version = models.PositiveIntegerField(
        help_text="number of the version; 0: answered before a version was chosen"
    )
    start = models.DateTimeField()
    seconds = models.PositiveIntegerField(help_text="length of the interval")
    requests = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    counts_json = models.JSONField(
        db_column="counts", default=dict, help_text="a jobs.messages.traffic.Counts"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["replica", "start", "seconds", "version"], name="traffic_of_interval"
            )
        ]
        indexes = [models.Index(fields=["seconds", "start"], name="traffic_by_age")]

    def __str__(self) -> str:
        return f"{self.requests} requests to {self.replica} at {self.start}"

    @property
    def counts(self) -> Counts:
        """Return the counts."""
        return Counts.model_validate(self.counts_json)
