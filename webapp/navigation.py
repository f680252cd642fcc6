"""Builds the navigation from one table; entries whose page does not exist are left out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from django.urls import NoReverseMatch, reverse

from jobs.models import Project, User


@dataclass(frozen=True)
class Entry:
    """An entry of the navigation. `needs_project` entries link to the current project."""

    label: str
    icon: str
    name: str
    needs_project: bool = False
    admin_only: bool = False
    counts: str = ""
    under: tuple[str, ...] = ()  # URL names, or their prefixes, of the pages below it


ENTRIES = (
    Entry("Home", "home", "home"),
    Entry("Experiments", "flask", "experiments", needs_project=True, under=("experiment",)),
    Entry("Jobs", "activity", "jobs", under=("job", "trial", "compare")),
    Entry("Queue", "list-numbers", "queue"),
    Entry("Models", "box", "models", under=("model", "version")),
    Entry("Approvals", "clipboard-check", "approvals", counts="approvals", under=("approval",)),
    Entry("Endpoints", "rocket", "endpoints", under=("endpoint",)),
    Entry("Datasets", "database", "datasets", under=("dataset",)),
    Entry("Code", "code", "code"),
    Entry("Workers", "server-2", "workers", under=("worker",)),
    Entry("Projects", "folder", "projects", under=("project",)),
)
ADMINISTRATION = (
    Entry("People", "users", "people", admin_only=True, under=("person",)),
    Entry("Tokens", "key", "tokens", under=("token",)),
    Entry("Webhooks", "webhook", "webhooks"),
    Entry("Audit", "shield-check", "audit"),
    Entry("Settings", "settings", "settings", admin_only=True),
)


@dataclass(frozen=True)
class Link:
    """An entry as shown on a page."""

    label: str
    icon: str
    url: str
    current: bool
    count: int


def links(
    entries: tuple[Entry, ...], *, user: User, project: Project | None, here: str, count: Callable[[str], int]
) -> list[Link]:
    """Return the entries that `user` sees on the page with the URL name `here`."""
    shown = []
    for entry in entries:
        address = _address(entry.name, project.slug if project and entry.needs_project else "")
        if address and (user.is_superuser or not entry.admin_only):
            counted = count(entry.counts) if entry.counts else 0
            shown.append(Link(entry.label, entry.icon, address, _is_current(entry, here), counted))
    return shown


def _is_current(entry: Entry, here: str) -> bool:
    below = entry.under if entry.name == "home" else (entry.name, *entry.under)
    return here == entry.name or here in below or any(here.startswith(f"{name}_") for name in below)


@cache
def _address(name: str, slug: str) -> str:
    try:
        return reverse(name, args=[slug] if slug else [])
    except NoReverseMatch:
        return ""
