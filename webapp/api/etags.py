"""`ETag` and `If-Match`: nobody overwrites what they have not seen."""

from django.http import HttpRequest, HttpResponse

from webapp.http_errors import StaleEtag


def tag(version: int | str) -> str:
    """Return the entity tag of a row's version."""
    return f'"{version}"'


def give(response: HttpResponse, version: int | str) -> None:
    """Send the tag along."""
    response["ETag"] = tag(version)


def check(request: HttpRequest, version: int | str) -> None:
    """Hold the caller to the version they saw, if they said which.

    Raises:
        StaleEtag: `If-Match` names none that is current.
    """
    wanted = request.headers.get("If-Match")
    if wanted is None or wanted.strip() == "*":
        return
    seen = {part.strip().removeprefix("W/") for part in wanted.split(",")}
    if tag(version) not in seen:
        raise StaleEtag(f"If-Match names {wanted}, but the current one is {tag(version)}: read it again.")


def is_known(request: HttpRequest, version: int | str) -> bool:
    """Say whether the caller already has this version (`If-None-Match`)."""
    held = request.headers.get("If-None-Match", "")
    return tag(version) in {part.strip().removeprefix("W/") for part in held.split(",")}
