"""Puts the path of the public address, such as `/trainyard`, before the dashboard's own paths."""

from django.conf import settings


def beside_public_path(path: str) -> str:
    """Return a path of the dashboard, which begins with a slash, as it is at the public address."""
    return f"{settings.FORCE_SCRIPT_NAME or ''}{path}"
