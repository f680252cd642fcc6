"""Estimates for meshes in plans and on pages."""

import json
from typing import Any

import pytest

from jobs.actions.runs import attempt_end
from jobs.messages import events as contract
from jobs.queries.experiments import mesh_estimates, plan
from jobs.states import Outcome
from tests.experiments.test_mesh_estimates import (
    HYPERMODEL,
    MESH,
    PART,
    RESULT,
    ask,
    claimed,
    finish,
    jobs,
    make_completed,
    parts_of,
    read,
)
from tests.markup import one_line, text_of
from tests.present import present
from tests.world import World


@pytest.fixture
def meshed(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "mesh": MESH}


def test_the_plan_shows_the_variables_of_a_model_that_was_built(world: World, meshed: dict[str, Any]) -> None:
    body = {**meshed, "model": HYPERMODEL, "data": {"dataset": "digits"}}
    project, row, profile = parts_of(world)
    before = present(plan.validate_spec(project, body).plan)
    assert before.variables == () and "request an estimate" in before.variables_note
    request = mesh_estimates.request_of(project, read(body), row, profile, compiles=False, device_bytes=None)
    make_completed(world, request, RESULT)
    layout = [{"match": "net/dense/kernel", "axes": [None, "model"]}]
    planned = present(plan.validate_spec(project, {**body, "mesh": {**MESH, "layout": layout}}).plan)
    kernel, bias, mean = planned.variables
    assert (kernel.path, kernel.device_shape, kernel.rule, kernel.bytes) == (
        "net/dense/kernel", (64, 16), 0, 64 * 16 * 4,
    )  # fmt: skip
    assert (bias.dtype, bias.bytes, mean.trainable) == ("bfloat16", 64, False)
    assert planned.parameters == 64 * 32 + 32
    memory = present(planned.memory)
    held = 64 * 16 * 4 + 64
    assert (memory.weights, memory.gradients) == (held + 64 * 4, held)
    assert memory.optimizer == 2 * 64 * 16 * 4 + 64 + 12
    assert memory.activations == 2 * 64 * 100
    assert [rule.match for rule in planned.suggested_layout] == ["net/dense/kernel", "net/dense/bias"]


def test_layout_rules_are_checked_against_the_variables_that_were_built(
    world: World, meshed: dict[str, Any]
) -> None:
    body = {**meshed, "model": HYPERMODEL}
    project, row, profile = parts_of(world)
    request = mesh_estimates.request_of(project, read(body), row, profile, compiles=False, device_bytes=None)
    make_completed(world, request, RESULT)
    layout = [{"match": "net/conv/kernel", "axes": [None, "model"]}]
    wrong = plan.validate_spec(project, {**body, "mesh": {**MESH, "layout": layout}})
    messages = {problem.pointer: problem.message for problem in wrong.problems}
    assert "matches no variable" in messages["/spec/mesh/layout/0/match"]
    # Trials of a search may have other variables, so there it is a warning.
    space = [{"name": "learning_rate", "kind": "float", "min": 0.001, "max": 0.1}]
    search = {"search": {"algorithm": "random", "max_trials": 2, "space": space}}
    searched = plan.validate_spec(project, {**body, **search, "mesh": {**MESH, "layout": layout}})
    assert "/spec/mesh/layout/0/match" not in {problem.pointer for problem in searched.problems}
    found = present(searched.plan)
    assert any("matches no variable" in warning.message for warning in found.warnings)
    assert "without the search" in found.variables_note


def test_the_part_of_a_page_follows_the_job_and_shows_what_was_found(
    world: World, meshed: dict[str, Any]
) -> None:
    client = world.client(world.owner)
    assert "hx-get" not in one_line(client.get(PART))
    waiting = one_line(client.post(PART, {"spec": json.dumps(meshed), "device_gib": "1"}))
    (job,) = jobs()
    assert f'hx-get="{PART}?job={job.pk}"' in waiting and "It waits for a worker" in waiting
    worker, attempt = claimed()
    worker.report(
        attempt,
        contract.Started(time=1.0),
        contract.Progress(time=2.0, done=1, total=3, unit="compilations"),
        contract.Phase(time=3.0, name="compiling"),
    )
    assert "1 of 3 compilations are done" in text_of(client.get(PART, {"job": job.pk}))
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=RESULT.model_dump(mode="json"))
    shown = client.get(PART, {"job": job.pk})
    assert "hx-get" not in one_line(shown)
    text = text_of(shown)
    for words in (
        "As compiled for CPU", "Optimizer slots 20.0 kB exact", "1.25 ×", "all-reduce 2 9.0 kB",
        "The largest batch that fits has 4 096 rows", "built with values.",
    ):  # fmt: skip
        assert words in text.replace("\u202f", " "), (words, text)


def test_the_page_of_the_job_shows_what_was_found(world: World, meshed: dict[str, Any]) -> None:
    client = world.client(world.owner)
    job = ask(client, meshed, device_gib=1).json()["job"]
    assert "not known yet" in text_of(client.get(f"/jobs/{job}"))
    finish()
    text = text_of(client.get(f"/jobs/{job}")).replace("\u202f", " ")
    assert "3, with 2 080 trainable parameters" in text
    assert "4 simulated CPU devices" in text and "2 all-reduce of 9.0 kB" in text


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"spec": "no JSON"}, "/spec"),
        ({"spec": ""}, "/spec"),
        ({"spec": "{}"}, "/spec"),
        ({"spec": "{}", "device_gib": "much"}, "/device_gib"),
        ({"spec": "{}", "device_gib": "nan"}, "/device_gib"),
    ],
)
def test_the_part_of_a_page_shows_what_is_wrong(world: World, fields: dict[str, str], pointer: str) -> None:
    answer = world.client(world.owner).post(PART, fields)
    assert answer.status_code == 200 and pointer in text_of(answer)
    assert jobs() == []
