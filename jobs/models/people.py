from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Manager

from jobs.models.deletion import VisibleManager, deletion_key


class User(AbstractUser):
    """A person. `is_superuser` marks an administrator of the installation; passwords are optional."""

    is_service = models.BooleanField(default=False, help_text="the installation's own account, not a person")

    password_issuers = models.ManyToManyField(
        "self",
        symmetrical=False,
        related_name="+",
        help_text="the issuers of the session in which the password was set, who may know it",
    )

    login_issuers: frozenset[int] = frozenset()
    """The ids of the issuers of this session or token; empty without a login link of another person.

    These are the person who made its login link, and the issuers of the session in which it was made. It
    belongs to the request and is not stored. Each of them may have opened the link, or know the password that
    was set then, so the session decides nothing of theirs.
    """

    def __str__(self) -> str:
        return self.username

    def issuers_for(self, owner: "User") -> list[int]:
        """Return the ids of the issuers of a login link or token that this session makes for `owner`.

        The issuers of this session are among them: otherwise an administrator could act through an account
        that they made, make a second one with it, and be unknown as the issuer of that one.
        """
        return sorted((self.login_issuers | {self.pk}) - {owner.pk})


class Role(models.TextChoices):
    """The roles in a project. Every role includes the permissions of a viewer."""

    VIEWER = "viewer", "viewer"
    MEMBER = "member", "member"
    TRAINER = "trainer", "trainer"
    APPROVER = "approver", "approver"
    ADMIN = "admin", "admin"


class Project(models.Model):
    """A project of a team. Its slug is unique in the installation."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    single_person = models.BooleanField(
        default=False, help_text="requesters may approve the requests that they open from now on"
    )
    single_person_by = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who switched `single_person` on last; null: the operator at the terminal",
    )
    single_person_at = models.DateTimeField(
        null=True, help_text="when `single_person` was switched on last; kept after it is switched off"
    )
    max_slots = models.PositiveIntegerField(
        null=True, blank=True, help_text="quota of slots in use at the same time"
    )
    max_bytes = models.PositiveBigIntegerField(
        null=True, help_text="quota of bytes of its files; null: the installation's default"
    )
    max_jobs = models.PositiveIntegerField(
        null=True, help_text="quota of unfinished jobs; null: the installation's default"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    deletion = deletion_key()

    objects: Manager["Project"] = VisibleManager()  # `models` is the name of a relation here
    everything: Manager["Project"] = Manager()

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """The role of a user in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_a_project")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiToken(models.Model):
    """An API token of a user. Only its sha256 digest is stored; lists show `prefix`."""

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


class LoginLink(models.Model):
    """A link that logs a user in once. Only the sha256 digest of its secret is stored."""

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
