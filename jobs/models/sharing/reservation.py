from django.db import models
from django.db.models import F, Q

from jobs.models.people import User
from jobs.models.project import Project


class Reservation(models.Model):
    """Slots, or GPUs of a worker, that are kept for a person or a project for some time."""

    pool = models.CharField(max_length=63)
    # A name, since a worker that is started again is a new row.
    worker = models.CharField(max_length=200, blank=True, help_text="the worker's name; empty: the pool")
    slots = models.PositiveIntegerField(null=True, help_text="null: all slots")
    gpus = models.JSONField(
        default=list,
        blank=True,
        help_text="names of GPUs of the worker, such as gpu:1; their slots are counted",
    )
    begins = models.DateTimeField()
    ends = models.DateTimeField(db_index=True)
    person = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    note = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(person__isnull=True, project__isnull=False)
                | Q(person__isnull=False, project__isnull=True),
                name="reserved_for_one",
            ),
            models.CheckConstraint(condition=Q(begins__lt=F("ends")), name="reserved_for_some_time"),
        ]

    def __str__(self) -> str:
        return f"reservation {self.pk} of {self.worker or self.pool}"

    @property
    def holder(self) -> str:
        """Return for whom it is, as a name."""
        return f"project {self.project}" if self.project is not None else str(self.person)
