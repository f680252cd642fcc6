from dataclasses import dataclass
from functools import partial

import pytest

from tests.flow.readers import Reader, SocketReader, StreamReader
from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for

TRIALS, EXECUTIONS, EPOCHS = 4, 2, 30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/flow/" in item.path.as_posix():
            item.add_marker(pytest.mark.flow)


@dataclass(frozen=True)
class Watched:
    """A search that has ended, and what read its events from its start to its end."""

    job: int
    readers: list[Reader]


def has_events(reader: Reader) -> bool:
    return reader.cursor >= 5


@pytest.fixture(scope="package")
def watched(flow_installation: RunningYard) -> Watched:
    """A Bayesian search, two trials at a time; while it ran, the web server was killed under its readers."""
    space = [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1, "sampling": "log"}]
    bayesian = search("bayesian", max_trials=TRIALS, executions_per_trial=EXECUTIONS, space=space)
    job = flow_installation.submit(spec(search=bayesian, fit={"epochs": EPOCHS, "batch_size": 16}))
    kinds: list[type[Reader]] = [SocketReader, StreamReader]
    readers = [kind(flow_installation.urls["web"], flow_installation.bearer("ada"), job) for kind in kinds]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.wait_for(partial(has_events, reader), 120)
    web = flow_installation.parts()["web"]
    web.kill()
    wait_for(
        lambda: (new_web := flow_installation.parts().get("web")) and new_web.pid != web.pid,
        "another web server",
    )
    flow_installation.until_completed(job)
    return Watched(job, readers)
