from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. `is_superuser` is the installation's admin right; passwords are optional."""

    is_service = models.BooleanField(
        default=False, help_text="the installation's own account, never a person"
    )

    def __str__(self) -> str:
        return self.username


class Role(models.TextChoices):
    """What a person may do in a project, each role including what a viewer may."""

    VIEWER = "viewer", "viewer"
    MEMBER = "member", "member"
    TRAINER = "trainer", "trainer"
    APPROVER = "approver", "approver"
    ADMIN = "admin", "admin"


class Project(models.Model):
    """A team's space. Its slug is unique in the installation."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    single_person = models.BooleanField(default=False, help_text="the approver may be the requester")
    max_slots = models.PositiveIntegerField(null=True, blank=True, help_text="quota: slots in use at once")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's role in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_a_project")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiToken(models.Model):
    """A token of a person. Only its sha256 is kept; `prefix` is what lists show."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"


class LoginLink(models.Model):
    """A link that logs a person in once. Only the sha256 of its secret is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    digest = models.CharField(max_length=64, unique=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"login link of {self.user}"
