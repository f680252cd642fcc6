"""The shortest way through the whole product, in one installation, by its forms and pages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.specs import search, spec
from tests.flow.yard import PROJECT, RunningYard, open_yard
from tests.main_path.session import Session
from tests.ops.conftest import wait_for

MODEL = "flowers"
SETOSA = [5.1, 3.5, 1.4, 0.2]


@pytest.fixture
def installation(tmp_path: Path, migrated: Path | None) -> Iterator[RunningYard]:
    with open_yard(tmp_path / "home") as installation:
        installation.open(database=migrated)
        yield installation


def enter(installation: RunningYard, name: str) -> Session:
    return Session(installation.urls["web"], installation.call("tests.flow.people", "login", name))


def test_from_the_form_to_an_answer_of_the_model_that_a_second_user_has_approved(
    installation: RunningYard,
) -> None:
    ada, grace = enter(installation, "ada"), enter(installation, "grace")
    after = {"register": {"model": MODEL, "what": ["best"]}}
    experiment = spec(search=search(executions_per_trial=1), after=after)
    form = f"/p/{PROJECT}/experiments/new?dataset=iris"
    job_page = ada.submit(form, name="first", spec=json.dumps(experiment), do="submit")

    job = installation.until_completed(int(job_page.rpartition("/")[2]))
    (registered,) = job["results"]["versions"]
    version = f"/models/{MODEL}/versions/{registered['number']}"
    wait_for(lambda: installation.ada.get(version)["state"] == "candidate", "the version to validate")
    request = ada.submit(version, f"{version}/promote", stage="production", comment="The best trial.")
    promotion = f"/promotions/{request.rpartition('/')[2]}"
    wait_for(lambda: installation.ada.get(promotion)["state"] == "pending", "the gates")

    gates = installation.ada.get(promotion)["gates"]
    accepted = [gate["name"] for gate in gates if gate["state"] == "not_evaluated"]
    grace.submit(request, f"{request}/approve", comment="Fine.", accept=accepted)
    wait_for(lambda: installation.ada.get(promotion)["state"] == "released", "the release")
    served, answers = installation.predict(MODEL, [SETOSA])
    assert served == registered["number"]
    assert max(answers[0]) == answers[0][0], "this flower is a setosa"
    assert "released" in grace.page(request)
