"""Saves and deletes projects' credentials. The secrets leave the database only for a fetch."""

import json
import re
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from jobs import access, clock
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.errors import BadInput, Conflict, NotFound
from jobs.keys import sealing
from jobs.models import Credential as CredentialRow
from jobs.models import Project, User
from jobs.spec.data.credentials import CREDENTIAL, Credential
from jobs.spec.problems import Problem

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
MAX_CREDENTIALS = 100
"""How many credentials a project may have."""


def parse_credential(body: Any) -> Credential:
    """Parse a credential.

    Raises:
        BadInput: it is invalid. The messages do not repeat the values, which may be secrets.
    """
    try:
        return CREDENTIAL.validate_python(body)
    except ValidationError as error:
        problems = [_problem(item) for item in error.errors(include_url=False, include_input=False)]
    message = "; ".join(f"{problem.pointer or 'The body'}: {problem.message}" for problem in problems[:3])
    raise BadInput(message, problems)


def _problem(item: Any) -> Problem:
    # The first part of a place is the kind.
    place = [str(part) for part in item["loc"][1:]]
    message = str(item["msg"]).removeprefix("Value error, ")
    field, separator, rest = message.partition(": ")
    if not place and separator and field.isidentifier():
        # A check of the whole credential names its field.
        return Problem(f"/{field}", rest)
    return Problem("".join(f"/{part}" for part in place), message)


def save(project: Project, name: str, credential: Credential, *, by: User) -> CredentialRow:
    """Save a credential under a name. An earlier one with this name is overwritten.

    Raises:
        Forbidden: `by` may not manage the project.
        BadInput: the name is not valid.
        Conflict: the project has as many credentials as it may have.
    """
    access.require(by, project, access.Action.MANAGE)
    if not NAME.fullmatch(name):
        message = "use up to 63 lower-case letters, digits, - and _, with a letter or digit first"
        raise BadInput(message, [Problem("/name", message)])
    with transaction.atomic():
        others = quotas.lock_project(project).credentials.exclude(name=name)
        if others.count() >= MAX_CREDENTIALS:
            raise Conflict(
                f"{project} has {MAX_CREDENTIALS} credentials, and may have no more: delete some first."
            )
        row, _ = CredentialRow.objects.update_or_create(
            project=project,
            name=name,
            defaults={
                "kind": credential.kind,
                "place": credential.place(),
                "sealed": sealing.seal(credential.to_json(), _purpose(project.pk, name)),
                "created_by": by,
                "created": clock.now(),
            },
        )
        audit.record(
            "credential.save", f"credential:{name}", by=by, project=project, kind=row.kind, place=row.place
        )
    return row


def delete(project: Project, name: str, *, by: User) -> None:
    """Delete a credential. It is not kept for a restore.

    Raises:
        Forbidden: `by` may not manage the project.
        NotFound: the project has no such credential.
    """
    access.require(by, project, access.Action.MANAGE)
    with transaction.atomic():
        if not CredentialRow.objects.filter(project=project, name=name).delete()[0]:
            raise NotFound(f"Project {project} has no credential {name!r}.")
        audit.record("credential.delete", f"credential:{name}", by=by, project=project)


def secret_of(row: CredentialRow) -> Credential:
    """Return a credential with its secrets.

    Raises:
        Unreadable: it was sealed with another secret key.
    """
    return CREDENTIAL.validate_python(
        json.loads(sealing.unseal(row.sealed, _purpose(row.project_id, row.name)))
    )


def reseal_all() -> int:
    """Encrypt all credentials with the present secret key. Return how many cannot be decrypted."""
    lost = 0
    for row in CredentialRow.objects.select_for_update().order_by("pk"):
        try:
            row.sealed = sealing.reseal(row.sealed, _purpose(row.project_id, row.name))
        except sealing.Unreadable:
            lost += 1
        else:
            row.save(update_fields=["sealed"])
    return lost


def _purpose(project_id: int, name: str) -> str:
    return f"credential {project_id} {name}"
