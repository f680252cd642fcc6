"""Finds or creates a chief's search: authenticates the user and reads the search space."""

from pathlib import Path
from typing import NamedTuple

from jobs import access
from jobs.actions.people import people, tokens
from jobs.actions.search import external_search
from jobs.errors import BadInput, Forbidden, NotFound
from jobs.models import User
from jobs.queries.search.external_search import external_payload
from jobs.spec.external_search import ChiefAddress, ExternalSearch
from jobs.spec.formats import importing
from workers.chief.settings import TOKEN_VARIABLE, Settings


class OpenedSearch(NamedTuple):
    """The search to serve, and its previous chief's port (0: there was none)."""

    job_id: int
    port: int
    is_new: bool


def find_or_create_search(settings: Settings) -> OpenedSearch:
    """Return the search with the given project and name; create it if there is none.

    Raises:
        TrainyardError: no user is given, or the user lacks permission.
        FormatError: the file with the search space is invalid.
    """
    by = _user(settings)
    project = access.projects_of(by).filter(slug=settings.project).first()
    if project is None:
        raise NotFound(f"there is no project {settings.project!r}, or {by.username} is not a member of it")
    job, is_new = external_search.open_search(project, settings.name, _search_with_space(settings), by=by)
    address = external_payload(job).address or ChiefAddress()
    return OpenedSearch(job.pk, address.port, is_new)


def _user(settings: Settings) -> User:
    if settings.by is not None:
        return people.find_person(settings.by)
    if settings.token is None:
        raise Forbidden(
            f"Name the user of the search: --by NAME, or a token with the scope write in {TOKEN_VARIABLE}."
        )
    token = tokens.authenticate(settings.token)
    if token is None:
        fault = tokens.describe_refusal(settings.token)
        raise Forbidden(f"The token in {TOKEN_VARIABLE} is refused: {fault}.")
    if "write" not in token.scopes:
        raise Forbidden(f"The token in {TOKEN_VARIABLE} lacks the scope write.")
    return token.user


def _search_with_space(settings: Settings) -> ExternalSearch:
    if settings.space is None:
        return settings.search
    try:
        text = Path(settings.space).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--space {settings.space} cannot be read: {error}") from error
    read = importing.read(text).search["space"]
    return settings.search.extended(ExternalSearch.model_validate({"space": read}).space)
