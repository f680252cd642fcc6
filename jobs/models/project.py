from django.db import models
from django.db.models import Manager

from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.people import User


class Role(models.TextChoices):
    """The roles in a project. Every role includes the permissions of a viewer."""

    VIEWER = "viewer", "viewer"
    MEMBER = "member", "member"
    TRAINER = "trainer", "trainer"
    APPROVER = "approver", "approver"
    ADMIN = "admin", "admin"


class Project(models.Model):
    """A team's project. Its slug is unique in the installation."""

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
    max_uploads = models.PositiveIntegerField(
        null=True, help_text="quota of uploads in progress; null: the installation's default"
    )
    max_events = models.PositiveIntegerField(
        null=True, help_text="quota of events a second of its runs; null: the installation's default"
    )
    network = models.BooleanField(
        default=False, help_text="code of users that runs here may connect to other hosts"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    deletion = deletion_key()

    objects: Manager["Project"] = VisibleManager()  # `models` is the name of a relation here
    everything: Manager["Project"] = Manager()

    def __str__(self) -> str:
        return self.slug


class UploadReservation(models.Model):
    """An upload in progress, which counts against its project's quotas.

    It ends with its request. One that a killed web server left behind counts until its lease ends.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="upload_reservations")
    bytes = models.PositiveBigIntegerField(help_text="its size, or the bytes received if that is unknown")
    until = models.DateTimeField(help_text="end of the lease of the web server that receives it")

    def __str__(self) -> str:
        return f"upload of {self.bytes} bytes to {self.project}"


class Membership(models.Model):
    """A user's role in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_a_project")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"
