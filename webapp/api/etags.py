"""Handles `ETag`, `If-Match` and `If-None-Match`, so that concurrent changes are not overwritten."""

from django.http import HttpRequest, HttpResponse

from webapp.http_errors import StaleEtag


def tag(version: int | str) -> str:
    """Return the entity tag for a row's version."""
    return f'"{version}"'


def set_etag(response: HttpResponse, version: int | str) -> None:
    """Set a response's `ETag` header."""
    response["ETag"] = tag(version)


def require_match(request: HttpRequest, version: int | str) -> None:
    """Require that `If-Match`, if it is sent, names the current version.

    Raises:
        StaleEtag: it names another version.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return
    if tag(version) not in _tags_in(header):
        raise StaleEtag(f"If-Match is {header}, but the current version is {tag(version)}. Read it again.")


def is_not_modified(request: HttpRequest, version: int | str) -> bool:
    """Return whether the caller already has this version, by `If-None-Match`."""
    return tag(version) in _tags_in(request.headers.get("If-None-Match", ""))


def _tags_in(header: str) -> set[str]:
    # A proxy that compresses a response makes its tag a weak one.
    return {part.strip().removeprefix("W/") for part in header.split(",")}
