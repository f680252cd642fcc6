"""The steps that finish an attempt's task."""

import ast
from pathlib import Path

import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.sandbox import Level
from jobs.messages.task import ModelWithCode, OwnCode, Task
from tests.supervise.conftest import Bench
from workers.supervise.attempt.prepare import with_compile_cache, with_failures, with_models
from workers.supervise.attempt_repository import Assignment

ROOT = Path(__file__).parents[3]
FOLDERS = ("workers/supervise", "workers/node")
PREPARE = "workers/supervise/attempt/prepare.py"
CODE = OwnCode(digest="d", minimum=Level.PROCESS, network=False)
MODELS = (
    ModelWithCode(name="challenger", file="/a.keras", code=CODE),
    ModelWithCode(name="champion", file="/b.keras", code=CODE),
)


def task(**parts: object) -> Task:
    return ProfileTask(folder="/work", source="bundled", **parts)


def test_no_other_module_of_the_supervisor_copies_a_task() -> None:
    copying = set()
    for file in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name in ("with_inputs", "with_checkpoints") or name.endswith("task.model_copy"):
                copying.add(str(file.relative_to(ROOT)))
    assert copying == {PREPARE}


def test_models_whose_packages_are_missing_have_the_cause() -> None:
    placed = with_failures(task(models=MODELS), {"champion": "no such package"})
    assert [model.failure for model in placed.models] == ["", "no such package"]


def test_a_runner_gets_sockets_in_place_of_the_code_of_models() -> None:
    placed = with_models(task(models=MODELS), {"challenger": Path("/c.sock")})
    assert [(model.code, model.socket) for model in placed.models] == [(None, "/c.sock"), (None, "")]


@pytest.mark.parametrize("compile_cache", ["/own", None])
async def test_a_task_that_names_no_compile_cache_gets_that_of_its_project(
    bench: Bench, compile_cache: str | None
) -> None:
    assignment = Assignment(attempt=1, job=1, root=1, project=7)
    placed = await with_compile_cache(task(compile_cache=compile_cache), assignment, bench.node)
    assert placed.compile_cache == (compile_cache or str(bench.node.compile_caches / "project-7"))
