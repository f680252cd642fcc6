import json
from functools import cached_property, lru_cache

from django.db import models

from jobs.models.deletion import VisibleManager, deletion_key
from jobs.models.digests import text_digest
from jobs.models.people import User
from jobs.models.project import Project
from jobs.spec.experiment import ExperimentSpec


class Experiment(models.Model):
    """A named series of revisions in a project. `draft` contains a spec that is not valid yet."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=200)
    tags = models.JSONField(default=list)
    notes = models.TextField(blank=True)
    draft = models.JSONField(null=True, help_text="an unfinished spec saved from the form")
    archived = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1, help_text="incremented by each change; the ETag")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)
    deletion = deletion_key()

    objects: models.Manager["Experiment"] = VisibleManager()
    everything: models.Manager["Experiment"] = models.Manager()

    def __str__(self) -> str:
        return self.name

    @property
    def notes_digest(self) -> str:
        """Return a digest of the notes and tags, so that a page notices another person's change."""
        return text_digest(self.notes, *self.tags)


class Revision(models.Model):
    """One immutable spec in an experiment's series."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    spec_json = models.JSONField(db_column="spec")
    digest = models.CharField(max_length=64, db_index=True)
    reason = models.CharField(max_length=1000, blank=True, help_text="why a running search was changed")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "number"], name="revision_number")]

    def __str__(self) -> str:
        return f"{self.experiment} r{self.number}"

    @cached_property
    def spec(self) -> ExperimentSpec:
        """Return the spec."""
        return _parse_spec(json.dumps(self.spec_json))


# The scheduler asks for the same few specs at each pass, every time from new rows. The content is the key, so
# that no process can have an old spec. Specs are immutable, so callers may share them.
@lru_cache(maxsize=64)
def _parse_spec(content: str) -> ExperimentSpec:
    return ExperimentSpec.model_validate(json.loads(content))
