import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.people import People, make_people

SHARED = ("chaos", "browser", "flow", "serving")
"""Folders whose tests share what takes seconds to start: one of pytest-xdist's workers runs all of each.
The longest comes first, so that the workers end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(SHARED)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


def _group(nodeid: str) -> str:
    """Return the folder if its tests belong together, else the file."""
    path = nodeid.split("::")[0]
    folder = path.split("/")[1]
    return folder if folder in SHARED else path


class Grouped(LoadScopeScheduling):
    """Whole groups go to workers; `--dist=loadgroup` of pytest-xdist 3.8 groups none under pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Grouped:
    return Grouped(config, log)


@pytest.fixture
def people(db: None) -> People:
    """The project "yard", its owner, member, trainer, approver and viewer, a stranger, an administrator."""
    return make_people()
