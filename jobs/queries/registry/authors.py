"""Finds the authors of a version's file: the people who made or registered it.

The same file can be registered again, by another person and under another model. Its authors stay the same.
A person may also have made it in the name of an account whose password they may know.
"""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from jobs.models import Artifact, JobArtifact, ModelVersion, User


def author_ids(version: ModelVersion) -> set[int]:
    """Return the user ids that made or registered a version's file."""
    creators = JobArtifact.objects.filter(artifact=version.artifact_id).values_list(
        "job__created_by", flat=True
    )
    registered = ModelVersion.everything.filter(artifact=version.artifact_id)
    people = {*creators, *registered.values_list("created_by", flat=True)}
    return {person for person in people if person is not None}


def accounts_of(people: Collection[int]) -> QuerySet[User]:
    """Return the accounts in whose name these people may act: their own, and those that they made."""
    return User.objects.filter(Q(pk__in=people) | Q(password_issuers__in=people)).distinct()


def files_of(people: Collection[int]) -> QuerySet[Artifact]:
    """Return the files that these people's accounts made or registered."""
    accounts = accounts_of(people).values("pk")
    created, registered = Q(uses__job__created_by__in=accounts), Q(versions__created_by__in=accounts)
    return Artifact.objects.filter(created | registered)
