from django.db import models

from jobs.models.people import User


class ApiToken(models.Model):
    """A user's API token. Only its sha256 digest is stored; lists show `prefix`."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    # A token that was created with another one ends with it.
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    endpoints = models.JSONField(
        null=True, help_text="names of the endpoints that it may ask; NULL: all of its owner's projects"
    )
    predicts_until = models.DateTimeField(
        null=True, help_text="until then a token with the scope serve may also ask for predictions"
    )
    expires = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)
    login_issuers = models.JSONField(
        default=list, help_text="ids of the issuers of the session that created the token"
    )
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"
