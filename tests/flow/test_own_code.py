"""A user's code runs in a real worker's sandbox, from its upload to the end of its search."""

import json
import os
from typing import Any

import pytest

from tests import own_code
from tests.flow.specs import search, spec
from tests.flow.yard import PROJECT, RunningYard
from workers.confinement.sandbox import landlock

pytestmark = pytest.mark.timeout(1800)

LOOK_AROUND = """
import json, os, socket
import keras
from keras import layers

def works(attempt, *arguments):
    try:
        attempt(*arguments)
    except OSError:
        return False
    return True

def connect(port):
    socket.create_connection(("127.0.0.1", port), timeout=5).close()

def append(path):
    with open(path, "a"):
        pass

HOME, PORT = {home!r}, {port}
FILES = [os.path.join(HOME, name) for name in ("secret.key", "release.key", "trainyard.sqlite3")]
print("FOUND", json.dumps({{
    "read": [path for path in FILES if works(lambda: open(path, "rb").read(1))],
    "written": [path for path in (*FILES, __file__, "/etc/passwd") if works(append, path)],
    "connected": works(connect, PORT),
    "secrets": [name for name in os.environ if "SECRET" in name or "URL" in name],
    "code": sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))),
}}))

def build_model(hp):
    units = hp.Int("units", 4, 100)
    if units * units == 36:
        hp.Choice("hidden", [1, 2, 3], default=2)
    model = keras.Sequential([layers.Dense(units, "relu"), layers.Dense(3, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""
ENDS_ITSELF = """
import {module}

def build_model(hp):
    hp.Int("units", 4, 8)
    {module}.{call}
"""


def upload(installation: RunningYard, name: str, text: str) -> str:
    """Send code as a new version, and return its digest."""
    answer = installation._http.post(
        f"{installation.urls['web']}/api/v1/code",
        headers=installation.bearer("ada"),
        data={"project": PROJECT},
        files={"file": (name, text.encode())},
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["digest"])


def model(digest: str) -> dict[str, Any]:
    return {"kind": "code", "digest": digest, "entry": "build_model"}


def strongest(installation: RunningYard) -> str:
    (worker,) = installation.ada.get("/workers")["items"]
    return str(next(state["level"] for state in worker["info"]["sandbox"] if state["offered"]))


needs_sandbox = pytest.mark.skipif(
    not (os.geteuid() == 0 or landlock.version()), reason="this machine offers no sandbox"
)


@needs_sandbox
def test_a_search_with_code_runs_in_the_strongest_sandbox_and_reaches_nothing_else(
    flow_installation: RunningYard,
) -> None:
    port = int(flow_installation.urls["web"].rpartition(":")[2])
    digest = upload(
        flow_installation, "look.py", LOOK_AROUND.format(home=str(flow_installation.home), port=port)
    )
    space = [{"name": "units", "kind": "int", "min": 4, "max": 8}]
    code_search = search(space=space, metric="val_accuracy", executions_per_trial=1, parallel_trials=1)
    # The dry build does not find the hyperparameter of this value.
    code_search["start_with"] = [{"units": 6}]
    job_id = flow_installation.submit(
        spec(model=model(digest), search=code_search, fit={"epochs": 3, "batch_size": 16})
    )
    done = flow_installation.until_completed(job_id)
    assert done["sandbox"] == {"level": strongest(flow_installation), "network": False}
    attempts = flow_installation.ada.get(f"/jobs/{job_id}/attempts")["items"]
    assert {attempt["sandbox"]["level"] for attempt in attempts} == {done["sandbox"]["level"]}
    lines = [line for line in flow_installation.log_of(job_id).splitlines() if line.startswith("FOUND ")]
    facts = json.loads(lines[-1].removeprefix("FOUND "))
    assert facts == {"read": [], "written": [], "connected": False, "secrets": [], "code": ["look.py"]}
    trials = sorted(
        flow_installation.ada.get(f"/jobs/{job_id}/trials")["items"], key=lambda trial: trial["number"]
    )
    assert trials[0]["values"] == {"units": 6, "hidden": 2}
    assert [set(trial["values"]) for trial in trials] == [{"units", "hidden"}] * 3, "it is searched then"
    columns = flow_installation.ada.get(f"/jobs/{job_id}/trials/columns")
    assert [axis.get("found_by") for axis in columns["space"]] == [None, 1]


@needs_sandbox
@pytest.mark.parametrize(("module", "call"), [("sys", "exit(0)"), ("os", "_exit(0)")])
def test_code_that_ends_its_process_fails_the_job_with_the_cause(
    flow_installation: RunningYard, module: str, call: str
) -> None:
    digest = upload(flow_installation, "ends.py", ENDS_ITSELF.format(module=module, call=call))
    job_id = flow_installation.submit(spec(model=model(digest), fit={"epochs": 1, "batch_size": 16}))
    ended = flow_installation.until_final(job_id)
    assert (ended["state"], ended["restarts"]) == ("failed", 0)
    assert f"{module}.{call}" in ended["error"]["message"]


@needs_sandbox
def test_code_that_cannot_build_ends_its_search_with_the_cause(flow_installation: RunningYard) -> None:
    digest = upload(flow_installation, "nothing.py", own_code.BROKEN["nothing"][0])
    # The code declares the space.
    code_search = {"max_trials": 2, "executions_per_trial": 2, "objective": {"metric": "val_loss"}}
    job = flow_installation.until_final(
        flow_installation.submit(spec(model=model(digest), search=code_search))
    )
    assert (job["state"], job["error"]["code"]) == ("failed", "code_build")
    assert "returned nothing" in job["error"]["message"]
