"""The modules that a new process loads: import contracts do not see imports at run time."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"keras", "jax", "keras_tuner", "optuna", "tensorflow", "torch"}
PLATFORM = {"django", "celery", "kombu", "channels", "redis"}
NOTHING, DJANGO = "pass", "import django; django.setup()"

ABSENT: dict[str, dict[str, set[str]]] = {
    NOTHING: {
        "import workers.runner": PLATFORM | HEAVY,
        "import workers.runner.__main__": PLATFORM | HEAVY,
        "import workers.serving.app": PLATFORM | HEAVY,
        "import jobs.spec": PLATFORM | HEAVY | {"numpy", "pandas"},
        "import workers.engine.training.training, workers.engine.tasks.ensemble": {
            "keras_tuner"
        },  # the search alone loads it
    },
    DJANGO: {
        "import webapp.asgi": HEAVY | {"sklearn", "workers"},
        "from django.urls import get_resolver; get_resolver().url_patterns": HEAVY | {"workers"},
        "import jobs.scheduler": HEAVY | {"webapp.pages", "webapp.api", "workers"},
        "import webapp.ops.supervisor": HEAVY | {"workers"},
        "import workers.supervise.attempt.attempt, workers.supervise.pool.runner_pool": HEAVY,
        "import workers.node.__main__": HEAVY | {"grpc"},
        "import workers.chief.server, workers.chief.search_setup": HEAVY,
    },
}
"""By the code that runs first: a statement, and the modules that must not be loaded after it."""

FORK_FOR_EACH = """
import gc, json, os, sys
gc.disable()
before, *statements = json.loads(sys.argv[1])
exec(before)
for statement in statements:
    sys.stdout.flush()
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{statement} failed")
        continue
    exec(statement)
    print(json.dumps(list(sys.modules)))
    sys.exit()
"""
"""Every statement runs in a separate process, after the code that runs first and nothing else."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules that its process had loaded at the end, by statement."""
    home = tmp_path_factory.mktemp("home")
    loaded_modules: dict[str, set[str]] = {}
    for before, statements in ABSENT.items():
        loaded_modules |= zip(statements, _modules_after(before, list(statements), home), strict=True)
    return loaded_modules


@pytest.mark.parametrize(
    ("statement", "absent"),
    [pair for statements in ABSENT.values() for pair in statements.items()],
    ids=lambda value: value.removeprefix("import ") if isinstance(value, str) else "",
)
def test_a_process_does_not_load_modules_it_must_not_need(
    statement: str, absent: set[str], loaded: dict[str, set[str]]
) -> None:
    assert not absent & loaded[statement]


def _modules_after(before: str, statements: Sequence[str], home: Path) -> list[set[str]]:
    environment = {
        **os.environ,
        "TRAINYARD_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
        "KERAS_BACKEND": "jax",
    }
    environment.pop("TRAINYARD_TEST_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", FORK_FOR_EACH, json.dumps([before, *statements])],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [set(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")]
