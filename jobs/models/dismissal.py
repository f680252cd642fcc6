from django.db import models

from jobs.models.people import User


class Dismissal(models.Model):
    """A thing under "Needs you" on Home that a person has dismissed, in the state that it had then."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, help_text="a jobs.queries.dismissals.NeedKind")
    row = models.BigIntegerField(help_text="the id of the request, job or token")
    state = models.CharField(max_length=100, help_text="it is shown again once it has another state")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind", "row"], name="dismissed_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.row}, dismissed by {self.user}"
