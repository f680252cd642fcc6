from django.db import models

from jobs.messages.environments import (
    EnvironmentFailure,
    EnvironmentState,
    InstalledPackage,
    InstalledSet,
)
from jobs.models.people import User
from jobs.models.project import Project
from jobs.models.worker import Worker


class PackageEnvironment(models.Model):
    """A virtual environment with the packages for code, in a folder that workers with one home share."""

    place = models.CharField(max_length=32, help_text="the folder that has it")
    digest = models.CharField(max_length=64)
    requirements_digest = models.CharField(max_length=64, db_index=True)
    requirements = models.JSONField(default=list)
    python = models.CharField(max_length=32)
    platform = models.CharField(max_length=100)
    for_engine = models.BooleanField()
    state = models.CharField(
        max_length=10, choices=[(state.value, state.value) for state in EnvironmentState]
    )
    error_json = models.JSONField(null=True, db_column="error", help_text="why it could not be built")
    packages_json = models.JSONField(default=list, db_column="packages", help_text="[{name, version}]")
    bytes = models.PositiveBigIntegerField(null=True)
    seconds = models.FloatField(null=True, help_text="that its build took")
    installer = models.CharField(max_length=10, blank=True)
    source = models.CharField(max_length=500, blank=True, help_text="where its packages came from")
    level = models.CharField(max_length=11, blank=True, help_text="of the sandbox of its build")
    log = models.TextField(blank=True, help_text="the output of its build")
    worker = models.ForeignKey(
        Worker, null=True, on_delete=models.SET_NULL, related_name="+", help_text="that built it last"
    )
    started = models.DateTimeField()
    built = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["place", "digest"], name="environment_in_place")]

    def __str__(self) -> str:
        return self.digest[:12]

    @property
    def error(self) -> EnvironmentFailure | None:
        """Return why it could not be built."""
        return None if self.error_json is None else EnvironmentFailure.model_validate(self.error_json)

    @property
    def packages(self) -> list[InstalledPackage]:
        """Return the packages that were installed for it."""
        return [InstalledPackage.model_validate(package) for package in self.packages_json]


class PackageSet(models.Model):
    """Packages that were installed together, by one digest of their names, versions and files."""

    digest = models.CharField(max_length=64, primary_key=True)
    packages_json = models.JSONField(db_column="packages", help_text="[{name, version, digest}]")

    def __str__(self) -> str:
        return self.digest[:12]

    @property
    def packages(self) -> tuple[InstalledPackage, ...]:
        """Return the packages, sorted by name."""
        return tuple(InstalledPackage.model_validate(package) for package in self.packages_json)


class PackageResolution(models.Model):
    """The versions that were chosen for a project's set of requirements; `recorded` has them."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    requirements_digest = models.CharField(max_length=64)
    token = models.CharField(max_length=16, blank=True, help_text="new when the versions are chosen again")
    changed = models.DateTimeField(null=True, help_text="when a person had the versions chosen again")
    changed_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "requirements_digest"], name="resolution_of_project")
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.requirements_digest[:12]}"


class RecordedPackages(models.Model):
    """The packages that a resolution chose for one Python and platform. Later environments get the same."""

    resolution = models.ForeignKey(PackageResolution, on_delete=models.CASCADE, related_name="recorded")
    python = models.CharField(max_length=16, help_text="without the last number of its version")
    platform = models.CharField(max_length=100)
    for_engine = models.BooleanField()
    packages = models.ForeignKey(PackageSet, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["resolution", "python", "platform", "for_engine"], name="packages_of_resolution"
            )
        ]

    def __str__(self) -> str:
        return f"{self.packages_id[:12]} for Python {self.python}"

    def as_set(self) -> InstalledSet:
        """Return the packages, with their Python and platform."""
        return InstalledSet(
            python=self.python,
            platform=self.platform,
            for_engine=self.for_engine,
            packages=self.packages.packages,
        )
