from pathlib import Path

import pytest

from tests.people import People, make_people

HERE = Path(__file__).parent
SHARED = ("chaos", "browser", "flow", "serving")
"""Folders whose tests share what takes seconds to start: one of pytest-xdist's workers runs all of each.
The longest comes first, so that the workers end together."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: SHARED.index(group) if (group := _group(item)) in SHARED else len(SHARED))


def _group(item: pytest.Item) -> str:
    folder = item.path.relative_to(HERE).parts[0]
    return folder if folder in SHARED else item.path.stem


@pytest.fixture
def people(db: None) -> People:
    """The project "yard", its owner, member, trainer, approver and viewer, a stranger, an administrator."""
    return make_people()
