from django.db import models


class Lease(models.Model):
    """A named lease that one process holds at a time, such as that of the scheduler."""

    name = models.CharField(max_length=50, primary_key=True)
    holder = models.CharField(max_length=200)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} by {self.holder}"
