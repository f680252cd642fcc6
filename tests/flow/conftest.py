from collections.abc import Iterator

import pytest

from tests.flow.yard import RunningYard, open_yard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/flow/" in item.path.as_posix():
            item.add_marker(pytest.mark.flow)


@pytest.fixture(scope="package")
def flow_yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    """One yard for all flow tests; each leaves it up."""
    with open_yard(tmp_path_factory.mktemp("flow") / "home") as yard:
        yard.open()
        yield yard
