"""Reads projects' credentials, without their secrets."""

from collections.abc import Iterable

from django.db.models import QuerySet

from jobs.answers.data.credentials import CredentialOut
from jobs.models import Credential, Project
from jobs.spec.data.credentials import LABELS


def credentials_of_project(project: Project) -> QuerySet[Credential]:
    """Return a project's credentials by name."""
    return credentials_of_projects([project])


def credentials_of_projects(projects: Iterable[Project]) -> QuerySet[Credential]:
    """Return several projects' credentials by name."""
    rows = Credential.objects.filter(project__in=list(projects)).defer("sealed")
    return rows.select_related("created_by").order_by("name", "pk")


def credential_out(row: Credential) -> CredentialOut:
    """Return a credential's API representation."""
    return CredentialOut(
        name=row.name,
        kind=row.kind,
        place=row.place,
        created_by=row.created_by.username,
        created=row.created,
    )


def credential_label(row: Credential) -> str:
    """Return the label for lists: the name, the kind, and where it is used."""
    where = f", {row.place}" if row.place else ""
    return f"{row.name} ({LABELS.get(row.kind, row.kind)}{where})"
