"""Before a chief listens: who asks, for which search, over which space."""

from pathlib import Path
from typing import NamedTuple

from jobs import access
from jobs.actions import external_search, people, tokens
from jobs.contracts.external_search import OutsideSearch
from jobs.contracts.formats import importing
from jobs.errors import BadInput, Forbidden, NotFound
from jobs.models import User
from workers.chief.settings import TOKEN_VARIABLE, Settings


class Opened(NamedTuple):
    """The search to serve, and where its last chief listened (port 0: it had none)."""

    job_id: int
    port: int
    is_new: bool


def open_for(settings: Settings) -> Opened:
    """Find or make the search.

    Raises:
        TrainyardError: nobody says who asks, or he may not.
        Refused: the file with the space cannot be read.
    """
    by = _who(settings)
    project = access.projects_of(by).filter(slug=settings.project).first()
    if project is None:
        raise NotFound(f"there is no project {settings.project!r}, or {by.username} is not a member of it")
    job, is_new = external_search.open_search(project, settings.name, _with_space(settings), by=by)
    return Opened(job.pk, int(job.payload.get("address", {}).get("port", 0)), is_new)


def _who(settings: Settings) -> User:
    if settings.by is not None:
        return people.find_person(settings.by)
    if settings.token is None:
        raise Forbidden(f"Say who runs the search: --by NAME, or a token of scope write in {TOKEN_VARIABLE}.")
    token = tokens.authenticate(settings.token)
    if token is None or "write" not in token.scopes:
        raise Forbidden(f"The token in {TOKEN_VARIABLE} is unknown, over, or lacks the scope write.")
    return token.user


def _with_space(settings: Settings) -> OutsideSearch:
    if settings.space is None:
        return settings.search
    try:
        text = Path(settings.space).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--space {settings.space} cannot be read: {error}") from error
    read = importing.read(text).search["space"]
    return settings.search.grown(OutsideSearch.model_validate({"space": read}).space)
