from collections.abc import Iterator

import pytest

from tests.chaos.doomed_runner import accept_requests, refuse_requests
from tests.chaos.harness import MODEL, Undisturbed, measure
from tests.flow.specs import spec
from tests.flow.yard import RunningYard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/chaos/" in item.path.as_posix():
            item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="package")
def chaos_installation(flow_installation: RunningYard) -> Iterator[RunningYard]:
    """The installation with a model in production that answers while other processes are killed."""
    accept_requests(flow_installation.home)
    job = flow_installation.submit(
        spec(after={"register": {"model": MODEL, "what": ["best"]}}), name="served"
    )
    flow_installation.until_completed(job)
    flow_installation.promote(MODEL, 1)
    yield flow_installation
    refuse_requests(flow_installation.home)


@pytest.fixture(scope="package")
def undisturbed(chaos_installation: RunningYard) -> Undisturbed:
    """The jobs of a round, run once without a kill."""
    return measure(chaos_installation)
