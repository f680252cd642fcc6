from django.db import models


class LoginAttempts(models.Model):
    """The failed attempts to log in of one user name or address, or a code that was used."""

    key = models.CharField(max_length=64, unique=True, help_text="HMAC of the name or address")
    failures = models.PositiveIntegerField(default=0)
    blocked_until = models.DateTimeField(null=True)
    last = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} failed attempts"
