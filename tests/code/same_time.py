"""Two requests at the same time, in one thread."""

from collections.abc import Callable

import pytest

from jobs.actions.people import quotas
from jobs.models import Project


def before_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have another request do something just before the next one gets the lock of its project."""
    lock = quotas.lock_project

    def locked_later(project: Project) -> Project:
        monkeypatch.setattr(quotas, "lock_project", lock)
        act()
        return lock(project)

    monkeypatch.setattr(quotas, "lock_project", locked_later)
