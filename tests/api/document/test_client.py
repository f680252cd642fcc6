"""A client that a public generator makes of the OpenAPI document type-checks and works."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from jobs.models import Experiment, Job
from jobs.spec.experiment import ExperimentSpec
from tests.api.conftest import Caller
from tests.factories import SEARCH, make_dataset, make_trials
from tests.people import make_people

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"
SCRIPT = Path(__file__).with_name("client_script.py")
PATIENCE = 60.0
RICH: dict[str, Any] = {
    **SEARCH,
    "fit": {
        "epochs": 9,
        "optimizer": "sgd",
        "optimizer_args": {"momentum": 0.5, "nesterov": True},
        "schedule": {"kind": "cosine", "alpha": 0.1},
        "class_weights": {"0": 2.0},
    },
    "search": {
        **SEARCH["search"],
        "algorithm": "hyperband",
        "options": {"factor": 2, "iterations": 3},
        "evaluation": {"kind": "k_fold", "folds": 3},
        "space": [
            {"name": "units", "kind": "choice", "values": [16, 64]},
            {
                "name": "dropout",
                "kind": "float",
                "min": 0.1,
                "max": 0.5,
                "when": {"name": "units", "in": [64]},
            },
        ],
    },
    "mesh": {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2},
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that holds the generated package."""
    folder = tmp_path_factory.mktemp("client")
    settings = folder / "settings.json"
    # The media type of the parts of an upload, which the tus protocol demands.
    parts = {"application/offset+octet-stream": "application/octet-stream"}
    options = {"post_hooks": [], "package_name_override": "trainyard_client", "content_type_overrides": parts}
    settings.write_text(json.dumps(options))
    program = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    where = ["--path", str(DOCUMENT), "--output-path", str(folder / "trainyard_client")]
    generator = subprocess.run(
        [*program, *where, "--config", str(settings), "--fail-on-warning"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert generator.returncode == 0, generator.stdout + generator.stderr
    return folder


def test_a_script_of_twenty_lines_type_checks_against_the_generated_client(
    generated: Path, tmp_path: Path
) -> None:
    options = ["--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path)]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--follow-imports", "silent", str(SCRIPT)],
        env={**os.environ, "MYPYPATH": str(generated)},
        cwd=generated,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_generated_client_runs_an_experiment(
    generated: Path, live_server: LiveServer, call: Callable[..., Caller]
) -> None:
    people = make_people()
    make_dataset("digits")
    arguments = [live_server.url, call(people.owner).secret, people.project.slug]
    script = subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "PYTHONPATH": str(generated)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        complete(script)
        printed, _ = script.communicate(timeout=PATIENCE)
    finally:
        script.kill()
    assert (script.returncode, printed.strip()) == (0, "4 {'units': 64} 0.94\ntrial")


def complete(script: "subprocess.Popen[Any]") -> None:
    """End the job that the script submits, as its workers would."""
    deadline = time.monotonic() + PATIENCE
    while (job := Job.objects.first()) is None:
        assert script.poll() is None, script.communicate()[0]
        assert time.monotonic() < deadline, "no job was submitted"
        time.sleep(0.05)
    make_trials(job, 4)
    Job.objects.filter(pk=job.pk).update(state="completed", finished=job.created)
    assert Experiment.objects.get().name == "by the client"


def test_the_generated_classes_keep_every_part_of_a_spec(
    generated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(generated)
    models = import_module("trainyard_client.models")
    assert models.ExperimentSpec.from_dict(RICH).to_dict() == RICH
    ExperimentSpec.model_validate(RICH)
