"""What a fresh process has loaded: contracts on files miss what names load at run time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"keras", "jax", "keras_tuner", "tensorflow", "torch"}
PLATFORM = {"django", "celery", "kombu", "channels", "redis"}
DJANGO = "import django; django.setup();"


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import workers.runner", PLATFORM | HEAVY),
        ("import workers.runner.__main__", PLATFORM | HEAVY),
        ("import workers.serving.app", PLATFORM | HEAVY),
        ("import jobs.spec", PLATFORM | HEAVY | {"numpy", "pandas"}),
        ("import webapp.asgi", HEAVY | {"sklearn", "workers"}),
        ("from django.urls import get_resolver; get_resolver().url_patterns", HEAVY | {"workers"}),
        ("import jobs.scheduler", HEAVY | {"webapp.pages", "webapp.api", "workers"}),
        ("import webapp.ops.supervisor", HEAVY | {"workers"}),
        ("import workers.supervise.attempt, workers.supervise.pool", HEAVY),
        ("import workers.node.__main__", HEAVY),
    ],
    ids=lambda value: value.removeprefix("import ") if isinstance(value, str) else "",
)
def test_a_process_loads_only_its_own_room(code: str, absent: set[str], tmp_path: Path) -> None:
    needs_django = not code.startswith(
        ("import workers.runner", "import workers.serving", "import jobs.spec")
    )
    loaded = _modules_after((DJANGO if needs_django else "") + code, tmp_path)
    assert not absent & loaded


def test_the_search_alone_loads_keras_tuner(tmp_path: Path) -> None:
    loaded = _modules_after("import workers.engine.trainer, workers.engine.ensemble", tmp_path)
    assert "keras_tuner" not in loaded


def _modules_after(code: str, home: Path) -> set[str]:
    environment = {
        **os.environ,
        "TRAINYARD_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
        "KERAS_BACKEND": "jax",
    }
    environment.pop("TRAINYARD_TEST_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps(list(sys.modules)))"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))
