from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. `is_superuser` marks an installation administrator; passwords are optional."""

    is_service = models.BooleanField(default=False, help_text="the installation's own account, not a person")
    max_slots = models.PositiveIntegerField(
        null=True, blank=True, help_text="how many slots the person's jobs may hold at once; null: no limit"
    )

    password_issuers = models.ManyToManyField(
        "self",
        symmetrical=False,
        related_name="+",
        help_text="the issuers of the session in which the password was set, who may know it",
    )

    login_issuers: frozenset[int] = frozenset()
    """The ids of this session's or token's issuers; empty without another person's login link.

    These are the person who made its login link, and the issuers of the session in which it was made. It
    belongs to the request and is not stored. Each may have opened the link, or know the password that
    was set then, so the session decides nothing of theirs.
    """

    def __str__(self) -> str:
        return self.username

    def issuers_for(self, owner: "User") -> list[int]:
        """Return the issuers' ids for a login link or token that this session makes for `owner`.

        This session's issuers are among them: otherwise an administrator could act through an account that
        they made, make a second one with it, and be unknown as its issuer.
        """
        return sorted((self.login_issuers | {self.pk}) - {owner.pk})


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
