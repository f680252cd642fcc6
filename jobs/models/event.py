from django.db import models

from jobs.models.job import Job


class EventChunk(models.Model):
    """One transaction's events as compressed JSON, with cursors `first` to `last` in the root job."""

    root = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="event_chunks")
    first = models.PositiveBigIntegerField()
    last = models.PositiveBigIntegerField()
    has_logs = models.BooleanField(default=False)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["root", "last"], name="events_in_one_order")]

    def __str__(self) -> str:
        return f"events {self.first}-{self.last} of {self.root_id}"
