from django.db import models

from jobs.models.people import User


class Share(models.Model):
    """How much a person has used of a pool by runs that have ended. It halves with time.

    It survives restarts: the scheduler adds each ended attempt once.
    """

    pool = models.CharField(max_length=63)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    slot_seconds = models.FloatField(default=0.0, help_text="as it counted at `counted`")
    counted = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "person"], name="one_share_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.person} in pool {self.pool}: {self.slot_seconds} slot-seconds"
