"""Determines who made the file of a version: by a job, or by registering it.

The same file can be registered again, by another person and under another model. Its authors stay the same.
"""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from jobs.models import Artifact, JobArtifact, ModelVersion


def of_version(version: ModelVersion) -> set[int]:
    """Return the ids of the people who made or registered the file of a version."""
    made = JobArtifact.objects.filter(artifact=version.artifact_id).values_list("job__created_by", flat=True)
    registered = ModelVersion.everything.filter(artifact=version.artifact_id)
    found = {*made, *registered.values_list("created_by", flat=True)}
    return {person for person in found if person is not None}


def files_of(people: Iterable[int]) -> QuerySet[Artifact]:
    """Return the files that these people made or registered."""
    ids = list(people)
    return Artifact.objects.filter(Q(uses__job__created_by__in=ids) | Q(versions__created_by__in=ids))
