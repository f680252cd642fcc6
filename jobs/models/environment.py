from django.db import models

from jobs.contracts.environments import EnvironmentFailure, EnvironmentState, InstalledPackage
from jobs.models.worker import Worker


class PackageEnvironment(models.Model):
    """A virtual environment with the packages of code, in a folder that workers of one home share."""

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
        return [InstalledPackage.model_validate(each) for each in self.packages_json]
