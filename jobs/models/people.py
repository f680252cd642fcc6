from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. `is_superuser` marks an administrator of the installation; passwords are optional."""

    is_service = models.BooleanField(default=False, help_text="the installation's own account, not a person")

    password_issuer = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who made the login link of the session in which the password was set, and may know it",
    )

    login_issuer_id: int | None = None
    """Who made the login link from which this session or token came; None without such a link.

    It belongs to the request and is not stored. That person may have opened the link, or know the password
    that was set then, so the session decides nothing of theirs.
    """

    def __str__(self) -> str:
        return self.username
