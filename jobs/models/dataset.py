from django.db import models

from jobs.models.artifact import Artifact
from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.people import User
from jobs.models.project import Project
from jobs.spec.data.profile import Profile


class Dataset(models.Model):
    """A named data set. Bundled data sets have no project and are visible to everyone."""

    class Source(models.TextChoices):
        BUNDLED = "bundled", "bundled"
        UPLOAD = "upload", "uploaded"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="datasets")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    source = models.CharField(max_length=10, choices=Source.choices)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    deletion = deletion_key()

    objects: models.Manager["Dataset"] = VisibleManager()
    everything: models.Manager["Dataset"] = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "slug"], name="dataset_slug_in_project"),
            # Needed in addition: values of NULL differ from each other in the constraint above.
            models.UniqueConstraint(
                fields=["slug"], condition=models.Q(project=None), name="bundled_dataset_slug"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class DatasetVersion(models.Model):
    """An immutable version of a data set, identified by its content's digest."""

    class State(models.TextChoices):
        PREPARING = "preparing", "preparing"
        READY = "ready", "ready"
        FAILED = "failed", "failed"

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PREPARING)
    request = models.JSONField(default=dict, help_text="source, file name and requested roles of columns")
    upload = models.ForeignKey(Artifact, on_delete=models.PROTECT, null=True, related_name="+")
    table = models.ForeignKey(Artifact, on_delete=models.PROTECT, null=True, related_name="+")
    digest = models.CharField(max_length=64, blank=True)
    rows = models.PositiveBigIntegerField(null=True)
    profile_json = models.JSONField(null=True, db_column="profile")
    error = models.JSONField(null=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number")]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def files(self) -> list[str]:
        """Return the names of its files, in the order in which they are read; none for bundled data."""
        name = self.request.get("file")
        return self.request.get("files") or ([name] if name else [])

    @property
    def profile(self) -> Profile | None:
        """Return the profile; None until the version is ready."""
        return None if self.profile_json is None else Profile.model_validate(self.profile_json)


class FurtherFile(models.Model):
    """A further file, if a version has several. The rows of the first one, its `upload`, come before."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="further_files")
    position = models.PositiveSmallIntegerField()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["version", "position"], name="further_file_position")]

    def __str__(self) -> str:
        return f"file {self.position} of {self.version}"
