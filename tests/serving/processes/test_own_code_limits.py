"""Limits for version code, and the machine's levels that confine it."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from jobs.messages.fork import Confinement
from jobs.messages.sandbox import Level
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until
from tests.serving.own_code import served, version_with
from tests.serving.processes.test_own_code import ended, predictions, process_of
from workers.confinement.isolation.users import RunnerUsers, UidRange
from workers.confinement.isolation.view import View


def error_of(server: ServerProcess, dashboard: FakeDashboard, model: str) -> str:
    """Wait until a model is served or has an error, and return that."""
    ready = f"{server.url}/v2/models/{model}/ready"
    until(lambda: dashboard.last_report(model).get("error") or HTTP.get(ready).status_code == 200)
    return dashboard.last_report(model).get("error") or ""


HOSTILE = """
import os, socket, sys
from keras import ops

def works(action):
    try:
        action()
    except Exception as error:
        print(type(error).__name__, error)
        return 0
    return 1

def found():
    tries = [
        lambda: open({secret!r}).read(),
        lambda: open({secret!r}, "r+"),
        lambda: os.listdir(os.path.join({home!r}, "sizes")),
        lambda: socket.create_connection(("127.0.0.1", {port}), timeout=3),
        lambda: open(__file__, "a"),
        lambda: os.kill({pid}, 0),
        lambda: open("/proc/{pid}/environ", "rb").read(),
    ]
    return sum(works(each) << i for i, each in enumerate(tries))

def answer(x, total):
    return total * 0 + float(found())
"""


def test_the_code_reaches_neither_files_nor_network_nor_processes(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    helpers = HOSTILE.format(
        secret=str(server.home / "token"),
        home=str(server.home / "home"),
        port=int(dashboard.url.rpartition(":")[2]),
        pid=server.process.pid,
    )
    dashboard.publish(served("hostile", 1, version_with(dashboard, 1, model_files["own"], helpers)))
    dashboard.serves("hostile", 1)
    # The number of the bits that are set names each attempt that succeeded.
    assert predictions(server.url, "hostile") == [[4.0, 0.0]]
    ended(dashboard, "hostile", 2)


BOMBS = """
import os, time
import jax, numpy as np

def memory():
    kept = []
    while True: kept.append(np.ones(2**24))

def processes():
    while True:
        if os.fork() == 0: time.sleep(600)

def kill():
    os.kill(os.getpid(), 9)

def endless():
    while True: pass

def output():
    print("x" * 2**27)
    time.sleep(600)

BOMBS = [memory, processes, kill, endless, output]

def host(total):
    if total.max() >= 1000:
        BOMBS[int(total.max()) // 1000 - 1]()
    return total

def answer(x, total):
    return jax.pure_callback(host, jax.ShapeDtypeStruct(total.shape, total.dtype), total)
"""


@pytest.mark.timeout(900)
def test_limits_hold_while_other_models_answer(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    dashboard.publish(served("bombs", 1, version_with(dashboard, 1, model_files["own"], BOMBS)))
    dashboard.serves("bombs", 1)
    for number, kind in enumerate(("memory", "processes", "kill", "endless", "output"), 1):
        assert until(lambda: predictions(server.url, "bombs") == [[4.0, 4.0]]), kind
        before = present(until(lambda: server.child_of("bombs")))
        inside = before.children(recursive=True)
        exploding = json.dumps({"instances": [[1000 * number, 0, 0, 0]]}).encode()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(predictions, server.url, "bombs", exploding)
            answered = 0
            while not asked.done():
                assert predictions(server.url, "telling") == [[8.0, 2.0]], kind
                answered += 1
                time.sleep(0.1)
        assert answered > 3, kind
        assert not isinstance(asked.result(), list), kind
        # It is replaced, and nothing of it is left.
        _, alive = psutil.wait_procs([before, *inside], timeout=30)
        assert alive == [], kind
    assert until(lambda: predictions(server.url, "bombs") == [[4.0, 4.0]])
    ended(dashboard, "bombs", 2)


@pytest.fixture
def confined(place: Path) -> Iterator[Confinement | None]:
    """A user without privileges, if the tests are run by root."""
    if os.geteuid() != 0:
        yield None
        return
    user = RunnerUsers(UidRange(60600, 61100), place / "users").claim()
    hidden, visible = View.hiding((), ())
    yield Confinement(uid=user.uid, group=user.uid, hidden=hidden, visible=(*visible, str(place)))
    user.end_processes()
    user.release()


def test_a_server_without_privileges_has_the_levels_of_its_machine(
    model_files: dict[str, bytes], place: Path, confined: Confinement | None
) -> None:
    """At each of them, a killed server leaves no process, and the next one serves again."""
    dashboard, folder = FakeDashboard(), place / "server"
    home = str(folder / "home")
    helpers = HOSTILE.format(secret=f"{home}/state.json", home=home, port=dashboard.url[-5:], pid=os.getpid())
    version = version_with(dashboard, 1, model_files["own"], helpers, minimum=Level.PROCESS)
    dashboard.publish(served("own", 1, version))
    possible_by_level = {}
    for level in Level:
        dashboard.reports.clear()
        variables: dict[str, str] = {"TRAINYARD_SANDBOX_LEVELS": level}
        if level is Level.PROCESS:
            # There, each child is a new interpreter.
            variables["TRAINYARD_SERVING_FORK"] = "0"
        with running(folder, dashboard, confined=confined, variables=variables) as server:
            if not (error := error_of(server, dashboard, "own")):
                ((total, possible),) = predictions(server.url, "own")
                assert total == 4.0
                possible_by_level[level] = possible
                assert process_of(dashboard, "own", 1, fact="sandbox")["sandbox"] == level.value
            assert not error or "needs the sandbox level" in error
            everything = psutil.Process(server.process.pid).children(recursive=True)
            server.kill()
            _, alive = psutil.wait_procs(everything, timeout=30)
            assert alive == [], level
    dashboard.close()
    # At the level `process`, the code has the user of the server.
    assert {level for level, possible in possible_by_level.items() if possible} == {Level.PROCESS}
    assert len(possible_by_level) > 1
