from django.db import models

from jobs.models.people import User


class IdempotencyKey(models.Model):
    """The response to a POST, which is repeated for requests with the same key and body."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=240, help_text="token id and the hash of the key of the client")
    route = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    # NULL while the first request with this key is running.
    status = models.PositiveSmallIntegerField(null=True)
    # Its body is encrypted with the key of the client, because it may contain a login link.
    response = models.JSONField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key", "route"], name="idempotency_key")]

    def __str__(self) -> str:
        return self.key
