from collections.abc import Iterator

import pytest

from tests.chaos.harness import MODEL, Undisturbed, measure
from tests.flow.specs import spec
from tests.flow.yard import RunningYard, open_yard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/chaos/" in item.path.as_posix():
            item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="package")
def chaos_yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    """One yard for all kills, with a model in production; its runners die where they are told to."""
    runner = {"TRAINYARD_RUNNER_MODULE": "tests.chaos.doomed_runner", "TRAINYARD_NODE_SILENCE": "20"}
    with open_yard(tmp_path_factory.mktemp("chaos") / "home", **runner) as yard:
        yard.open()
        job = yard.submit(spec(after={"register": {"model": MODEL, "what": ["best"]}}), name="served")
        yard.until_completed(job)
        yard.promote(MODEL, 1)
        yield yard


@pytest.fixture(scope="package")
def undisturbed(chaos_yard: RunningYard) -> Undisturbed:
    """The jobs of a round, run once without a kill."""
    return measure(chaos_yard)
