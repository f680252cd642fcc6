from django.db import models

from jobs.models.artifact import Artifact
from jobs.models.people import User
from jobs.models.project import Project, UploadReservation


class ResumableUpload(models.Model):
    """A file that arrives in parts. Its bytes are in a file in the store's folder `incoming`.

    That file's size is the number of bytes received, so nothing is written here while they arrive.
    """

    key = models.CharField(primary_key=True, max_length=32)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="resumable_uploads")
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200, help_text="name of the file")
    length = models.PositiveBigIntegerField(help_text="bytes of the whole file")
    reservation = models.OneToOneField(UploadReservation, on_delete=models.SET_NULL, null=True)
    sha256 = models.CharField(max_length=64, blank=True, help_text="set before the file moves to the store")
    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, related_name="+", help_text="set after that"
    )
    created = models.DateTimeField(auto_now_add=True)
    until = models.DateTimeField(db_index=True, help_text="when it expires unless a further part arrives")

    def __str__(self) -> str:
        return f"upload of {self.name} to {self.project}"
