"""Finds the code version that an address names, and builds addresses for versions."""

from jobs import access
from jobs.models import CodeVersion
from webapp.pages.shortcuts import (
    Request,
    url,
)


def version_of(request: Request, digest: str) -> CodeVersion:
    """Return the code version that the address names; `project` distinguishes equal versions."""
    named = request.GET.get("project") or request.POST.get("project")
    home = access.get_project(request.user, named) if named else None
    return access.get_code(request.user, digest, home)


def version_address(version: CodeVersion, **query: str) -> str:
    """Return the address of a version's page."""
    return url("code_version", version.digest, project=version.project.slug, **query)


def line_address(version: CodeVersion, file: str, line: int | None) -> str:
    """Return the address for a line in a version's file."""
    return version_address(version, file=file) + (f"#L{line}" if line else "")
