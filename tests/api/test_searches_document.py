"""The calls in docs/searches.md succeed in their order."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.api.conftest import Caller
from tests.factories import SEARCH, make_experiment, make_job, make_trials
from tests.people import People

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "searches.md").read_text()
CALL = re.compile(r'curl -sS -X POST "\$TY/jobs/\$JOB(/[^"]+)".*?-d \'(.*?)\'\n```', re.DOTALL)
ANSWERS = {"/revise": 202, "/trials": 201, "/trials/1/continue": 202, "/ensemble": 202, "/finish": 202}


def test_every_call_of_the_document_is_accepted(people: People, call: Callable[..., Caller]) -> None:
    dropout = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5}
    units = {"name": "units", "kind": "int", "min": 16, "max": 128, "step": 16}
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": [units, dropout]}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    for trial in make_trials(job, 2):
        for execution in (1, 2):
            job.checkpoints.create(
                trial=trial,
                execution=execution,
                attempt=1,
                step=5,
                epoch=5,
                folder=f"{trial.number}-{execution}",
                bytes=1,
            )
    calls = CALL.findall(TEXT)
    assert len(calls) == TEXT.count("curl -sS") == 6
    for path, body in calls:
        answer = call(people.owner).post(f"/jobs/{job.pk}{path}", json.loads(body))
        assert answer.status_code == ANSWERS[path], answer.content
