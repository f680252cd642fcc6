from django.db import models

from jobs.models.people import User


class LoginAttempts(models.Model):
    """The failed login attempts for one user name or address, or a code that was used."""

    key = models.CharField(max_length=64, unique=True, help_text="HMAC of the name or address")
    failures = models.PositiveIntegerField(default=0)
    blocked_until = models.DateTimeField(null=True)
    last = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} failed attempts"


class LoginLink(models.Model):
    """A link that logs a user in once. Only its secret's sha256 digest is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    # NULL: the operator at the terminal.
    issuer = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    issuers = models.JSONField(
        default=list, help_text="ids of the issuer and of the issuers of their session, without its user"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"login link of {self.user}"
