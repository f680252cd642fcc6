"""Jobs of scripts: their pages, and what cannot follow their trials."""

from typing import Any

import pytest

from jobs.actions.code import own_code
from jobs.actions.registry.registration import add_to_new_model, register_outputs
from jobs.actions.runs import submit
from jobs.actions.runs.tasks import origin_of
from jobs.actions.search import ensembles, trials
from jobs.actions.storage import artifacts
from jobs.errors import Conflict, Forbidden, NotFound, StaleState
from jobs.kinds.register.payload import RegisterPayload
from jobs.models import CodeFile, CodeVersion, Experiment, Job
from jobs.queries.code import sandboxes
from jobs.queries.registry.versions import is_foreign
from jobs.queries.search.retraining import chosen_epoch
from jobs.store import store
from tests.factories import make_experiment, make_job, make_job_artifact, make_trials
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present

SPEC = {
    "version": 1,
    "model": {"kind": "script", "digest": "c" * 64, "entry": "train.py", "args": {"epochs": 3}},
    "search": {
        "objective": {"metric": "reward", "direction": "max"},
        "max_trials": 4,
        "space": [{"name": "units", "kind": "int", "min": 16, "max": 64}],
    },
}


@pytest.fixture
def code(people: People) -> CodeVersion:
    version = CodeVersion.objects.create(
        project=people.project, name="net", digest="c" * 64, bytes=10, created_by=people.trainer
    )
    file = artifacts.adopt(store().put_blocks([b"save('model.keras')"]))
    CodeFile.objects.create(version=version, path="train.py", artifact=file, lines=1)
    return version


@pytest.fixture
def search(people: People, code: CodeVersion) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner, spec=SPEC)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 4)
    return job


@pytest.mark.parametrize(
    "tab", ["overview", "trials", "charts", "logs", "system", "artifacts", "attempts", "spec"]
)
def test_the_pages_of_a_search_over_a_script_need_no_data(search: Job, people: People, tab: str) -> None:
    answer = browser_of(people.trainer).get(f"/jobs/{search.pk}?tab={tab}")
    assert answer.status_code == 200
    if tab == "overview":
        text = text_of(answer)
        assert "per step, one line per execution" in text
        assert "epoch" not in text
        assert 'data-lost="There is no checkpoint of a script. Resume starts' in answer.content.decode()


def test_the_pages_of_a_trial_of_a_single_run_and_of_the_experiment_are_shown(
    search: Job, people: People
) -> None:
    browser = browser_of(people.trainer)
    trial = text_of(browser.get(f"/jobs/{search.pk}/trials/1"))
    assert "Best step" in trial and "epoch" not in trial.lower()
    assert browser.get(f"/p/yard/experiments/{search.experiment_id}").status_code == 200
    assert browser.get("/p/yard/experiments").status_code == 200
    alone = {name: part for name, part in SPEC.items() if name != "search"}
    experiment = make_experiment(project=people.project, by=people.owner, spec=alone)
    run = make_job(
        experiment=experiment, by=people.owner, kind="train", state="completed",
        results={
            "metrics": {"reported": {"reward": 0.75}}, "best_epoch": 3, "epochs": 3,
            "command": ["train.py", "--epochs", "3", "--no-cache"],
        },
    )  # fmt: skip
    page = text_of(browser.get(f"/jobs/{run.pk}"))
    assert "Reported by the script reward 0.75" in page
    assert "Started with train.py --epochs 3 --no-cache" in page
    assert "starts again from its beginning" in page
    assert chosen_epoch(run) is None
    assert browser.get(f"/api/v1/jobs/{run.pk}").status_code == 200


def test_a_retrained_trial_is_one_more_run_of_the_script(search: Job, people: People) -> None:
    trial = search.trials.get(number=2)
    job = trials.retrain(trial, by=people.trainer, register_as="net")
    spec = present(job.revision).spec
    assert (spec.search, spec.after.retrain) == (None, None)
    assert spec.model.args == {"epochs": 3, **trial.values}
    assert present(spec.after.register_).model == "net"
    with pytest.raises(NotFound, match=r"left no file model\.keras"):
        register_outputs(job)


def test_the_model_of_a_script_is_treated_as_a_file_from_outside(search: Job, people: People) -> None:
    run = make_job(experiment=search.experiment, by=people.owner, kind="train", state="completed")
    model = make_job_artifact(run)
    version = add_to_new_model(people.project, "net", model.artifact_id, by=people.trainer).version
    # Its validation scans the file, and imports no code.
    assert (is_foreign(version), version.code, origin_of(version)) == (True, None, (None, None))
    assert (version.lineage["code"], version.lineage["code_name"]) == ("c" * 64, "net")
    page = browser_of(people.viewer).get("/models/net/versions/1")
    assert f'href="/code/{"c" * 64}?project=yard"' in page.content.decode()
    assert "the file model.keras that the script wrote" in text_of(page)


def test_a_validation_that_runs_no_code_needs_no_sandbox_and_no_trainer(
    search: Job, people: People, code: CodeVersion
) -> None:
    def validation(number: int, **fields: Any) -> Job:
        return submit.create_step(search, RegisterPayload(version=1, **fields), number, title="Validate")

    alone, with_code = validation(1), validation(2, code=code.digest)
    assert [sandboxes.needs_sandbox(job) for job in (alone, with_code)] == [False, True]
    assert own_code.code_of_job(alone) is None
    assert [sandboxes.may_run(people.member, job) for job in (alone, with_code)] == [True, False]
    own_code.require_right_to_job(people.member, alone)
    with pytest.raises(Forbidden):
        own_code.require_right_to_job(people.member, with_code)


def test_trials_of_scripts_are_neither_combined_nor_continued(search: Job, people: People) -> None:
    with pytest.raises(Conflict, match="only models that Trainyard trains are combined"):
        ensembles.queue_ensemble(search, [1, 2], by=people.trainer)
    assert (
        'data-dialog="ensemble"'
        not in browser_of(people.trainer).get(f"/jobs/{search.pk}/trials/1").content.decode()
    )
    with pytest.raises(StaleState, match="a script has no checkpoints"):
        trials.continue_training(search.trials.get(number=1), 10, by=people.trainer)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"kind": "script", "digest": 5, "entry": ["train.py"], "args": ["epochs"]}},
        {"model": {"kind": "script", "digest": None, "entry": None, "args": None, "env": "x"}},
        {"search": [1]},
        {"search": {"space": "units"}},
        {"search": {"space": [1, {}, {"name": "units"}, {"name": ["units"], "kind": "int"}]}},
        {"search": {"space": [{"name": "units", "kind": "int", "min": 1}, {"name": "a", "kind": "float"}]}},
        {"search": {"space": [{"name": "act", "kind": "choice", "values": 3}, {"name": "b", "kind": []}]}},
        {"data": "iris", "fit": 3, "after": [], "resources": "many"},
    ],
)
def test_the_form_shows_every_draft_of_a_script(people: People, code: CodeVersion, changes: Any) -> None:
    experiment = make_experiment(project=people.project, by=people.owner, spec=SPEC)
    Experiment.objects.filter(pk=experiment.pk).update(draft={**SPEC, **changes})
    address = f"/p/yard/experiments/{experiment.pk}/edit"
    browser = browser_of(people.trainer)
    assert browser.get(address).status_code == 200
    filled = {
        "name": "a",
        "code": code.digest,
        "entry": "train.py",
        "steps": "3",
        "seed": "0",
        "pool": "default",
        "slots": "1",
        "seen": "9999999999",
        "metric": "reward",
        "do": "submit",
        "arguments-TOTAL_FORMS": "1",
        "arguments-INITIAL_FORMS": "0",
        "arguments-0-name": "units",
        "arguments-0-use": "values",
        "arguments-0-text": "1, 2",
    }
    assert browser.post(address, filled).status_code < 500
