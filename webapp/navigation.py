"""Builds the navigation from one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

from jobs.models import Project, User


@dataclass(frozen=True)
class Entry:
    """A navigation entry.

    Attributes:
        label: its text.
        icon: its icon in the sprite.
        name: its page's URL name.
        needs_project: whether its page belongs to the current project; without one it leads to making one.
        admin_only: whether it is shown to administrators alone.
        scoped: whether its list shows the rows of the chosen project.
        counts: the key for the number beside it; empty for none.
        under: URL names, or their prefixes before `_`, for the pages below it.
    """

    label: str
    icon: str
    name: str
    needs_project: bool = False
    admin_only: bool = False
    scoped: bool = False
    counts: str = ""
    under: tuple[str, ...] = ()


ENTRIES = (
    Entry("Home", "home", "home", scoped=True),
    Entry("Experiments", "flask", "experiments", needs_project=True, under=("experiment", "mesh")),
    Entry("Jobs", "activity", "jobs", scoped=True, under=("job", "trial")),
    Entry("Queue", "list-numbers", "queue", scoped=True),
    Entry("Models", "box", "models", scoped=True, under=("model", "version")),
    Entry("Approvals", "clipboard-check", "approvals", counts="approvals", under=("approval",)),
    Entry("Endpoints", "rocket", "endpoints", scoped=True, under=("endpoint",)),
    Entry("Datasets", "database", "datasets", scoped=True, under=("dataset",)),
    Entry("Code", "code", "code", scoped=True),
    Entry("Workers", "server-2", "workers", under=("worker",)),
    Entry("Storage", "server", "storage", under=("storage", "deletion")),
    Entry("Projects", "folder", "projects", under=("project",)),
)
ADMINISTRATION = (
    Entry("People", "users", "people", admin_only=True, under=("person",)),
    Entry("Tokens", "key", "tokens", under=("token",)),
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


def visible_links(
    entries: tuple[Entry, ...],
    *,
    user: User,
    project: Project | None,
    here: str,
    counts: Mapping[str, int] | None = None,
    scope: Project | None = None,
) -> list[Link]:
    """Return the entries that `user` sees on the page with the URL name `here`.

    The addresses of lists name the project of the `scope`, so that a copied one shows others the same.
    """
    visible = []
    for entry in entries:
        if entry.admin_only and not user.is_superuser:
            continue
        if entry.needs_project and project is None:
            url = _address("project_new", "")
        else:
            url = _address(entry.name, project.slug if project and entry.needs_project else "")
        if scope is not None and entry.scoped:
            url = f"{url}?project={scope.slug}"
        pages = (entry.name, *entry.under)
        current = any(here == name or here.startswith(f"{name}_") for name in pages)
        visible.append(Link(entry.label, entry.icon, url, current, (counts or {}).get(entry.counts, 0)))
    return visible


# Every page resolves all of these addresses, and they never change.
@cache
def _address(name: str, slug: str) -> str:
    return reverse(name, args=[slug] if slug else [])
