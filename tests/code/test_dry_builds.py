"""Dry builds of own code: requests, results that are used again, and searches that wait for one."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.runs import attempt_end, pipeline
from jobs.models import CodeVersion, Job, Trial
from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.space.values import apply_values
from jobs.states import Outcome
from tests import factories, own_code
from tests.code.same_time import before_lock
from tests.jobs.yard import PretendWorker
from tests.markup import one_line, text_of
from tests.next_steps import has_next_step
from tests.people import People, browser_of

SPACE: list[dict[str, Any]] = [
    {"name": "units", "kind": "int", "min": 8, "max": 32, "step": 8},
    {"name": "rate", "kind": "float", "min": 1e-3, "max": 0.1, "sampling": "log"},
    {"name": "dropout", "kind": "boolean"},
]
BUILT = BuiltModel.model_validate(
    {
        "space": SPACE,
        "is_compiled": True,
        "own_fit": False,
        "loss": "mse",
        "metrics": ("val_loss", "val_f1"),
        "input_shape": (2,),
        "output_shape": (3,),
        "output": "probabilities",
        "parameters": 12,
        "builds": 3,
    }
)
DATA = {"dataset": "flowers"}


@pytest.fixture
def api(people: People) -> Client:
    factories.make_dataset("flowers", project=people.project, by=people.member)
    return browser_of(people.trainer)


@pytest.fixture
def code(api: Client) -> str:
    return stored(api, own_code.TUNED_FIT + own_code.RETURNED_OBJECTIVE + own_code.SEARCH_OF_LAYERS)


@pytest.fixture
def worker(people: People) -> PretendWorker:
    made = PretendWorker(slots=1)
    made.row.info = {"sandbox": [{"level": "landlock", "offered": True}]}
    made.row.save(update_fields=["info"])
    return made


def stored(api: Client, text: str) -> str:
    body = {"project": "yard", "files": [{"path": "model.py", "text": text}]}
    answer = api.post("/api/v1/code", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["digest"])


def ask(api: Client, code: str, entry: str = "build_model", **more: Any) -> Any:
    body = {"entry": entry, "data": DATA, **more}
    return api.post(f"/api/v1/code/{code}/dry-builds", body, content_type="application/json")


def field(name: str, *values: float) -> dict[str, Any]:
    """Return a row of a search over a field of the fit."""
    return {"name": f"fit/{name}", "kind": "choice", "values": [*values]}


def finish(worker: PretendWorker, built: BuiltModel | None = BUILT, error: Any = None) -> None:
    from jobs.actions.runs import schedule

    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    if built is None:
        attempt_end.finish(attempt.pk, Outcome.FAILED, error=error)
    else:
        result = {"built": built.model_dump(mode="json")}
        attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=result)


def spec_of(code: str, **search: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "data": DATA,
        "model": {"kind": "code", "digest": code, "entry": "build_model"},
        "fit": {"epochs": 3},
        "search": {"max_trials": 3, "objective": {"metric": "val_f1", "direction": "max"}, **search},
    }


def created(api: Client, spec: dict[str, Any]) -> Any:
    body = {"project": "yard", "name": "own", "spec": spec}
    return api.post("/api/v1/experiments", body, content_type="application/json")


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [each["pointer"] for each in answer.json()["errors"]]


def test_of_two_equal_requests_at_the_same_time_the_second_finds_the_job_of_the_first(
    api: Client, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[int] = []
    before_lock(monkeypatch, lambda: first.append(ask(api, code).json()["job"]))
    assert ask(api, code).json()["job"] == first[0]
    assert Job.objects.filter(kind="dry_build").count() == 1


def test_a_dry_build_is_done_once_and_its_result_is_used_again(
    api: Client, code: str, worker: PretendWorker
) -> None:
    first = ask(api, code)
    assert (first.status_code, first.json()["state"], first.json()["built"]) == (202, "queued", None)
    assert ask(api, code).json()["job"] == first.json()["job"]
    finish(worker)
    found = ask(api, code).json()
    assert (found["state"], found["job"]) == ("completed", first.json()["job"])
    assert [row["name"] for row in found["built"]["space"]] == ["units", "rate", "dropout"]
    assert found["unused"]["/fit/optimizer"] == "the code compiles its model"
    # Other arguments build something else.
    assert ask(api, code, "TunedFit", args={"classes": 3}).json()["job"] != first.json()["job"]


def test_the_page_of_a_dry_build_links_its_code_and_data_and_shows_what_was_built(
    api: Client, code: str, worker: PretendWorker
) -> None:
    job = ask(api, code, "TunedFit", args={"classes": 3}).json()["job"]
    open_ = one_line(api.get(f"/jobs/{job}"))
    assert f'href="/code/{code}?project=yard"' in open_ and "<code>TunedFit</code>" in open_
    assert "<code >classes=3</code>" in open_
    assert 'href="/datasets/flowers/versions/1?project=yard"' in open_
    assert "Hyperparameters" not in open_
    finish(worker)
    done = one_line(api.get(f"/jobs/{job}"))
    assert all(f"<code>{row['name']}</code>" in done for row in SPACE)
    assert "12 with default values" in done
    CodeVersion.objects.all().delete()
    assert f"{code[:8]}, which was deleted" in text_of(api.get(f"/jobs/{job}"))


def test_a_failed_dry_build_is_repeated_on_request_only(
    api: Client, code: str, worker: PretendWorker
) -> None:
    first = ask(api, code).json()["job"]
    finish(worker, None, error={"code": "code_build", "message": "building the model failed: no"})
    failed = ask(api, code).json()
    assert (failed["state"], failed["job"], failed["error"]["code"]) == ("failed", first, "code_build")
    assert "building the model failed: no" in text_of(api.get(f"/jobs/{first}"))
    refused = created(api, spec_of(code))
    assert pointers(refused) == ["/spec/model/entry"]
    (problem,) = refused.json()["errors"]
    assert problem["job"] == first and "building the model failed: no" in problem["message"]
    again = ask(api, code, again=True).json()
    assert again["state"] == "queued" and again["job"] != first
    assert created(api, spec_of(code)).status_code == 201
    # It has no result and no checkpoint, and can be stopped before it begins.
    page = api.get(f"/jobs/{again['job']}").content.decode()
    assert "The job ends. If it resumes, it begins again." in page
    assert api.post(f"/api/v1/jobs/{again['job']}/stop").json()["state"] == "stopped"
    assert ask(api, code).json()["state"] == "stopped"


def test_a_wrong_request_names_its_field(api: Client, code: str) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"entry": "build_it"}, "/entry"),
        ({"entry": "Regression", "args": {"clases": 3}}, "/args/clases"),
        ({"args": {"classes": 3}}, "/args/classes"),
        ({"data": {"dataset": "none"}}, "/data/dataset"),
        ({"data": {"dataset": 7}}, "/data/dataset"),
    ]
    for sent, pointer in wrong:
        assert pointers(ask(api, code, **sent)) == [pointer]


def test_only_people_who_may_run_code_build(api: Client, code: str, people: People) -> None:
    assert ask(browser_of(people.member), code).status_code == 403
    assert ask(browser_of(people.viewer), code).status_code == 403
    assert ask(browser_of(people.stranger), code).status_code == 404


def test_rows_of_the_space_narrow_what_the_code_declares(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    rows = [
        {"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8},
        {"name": "rate", "kind": "fixed", "value": 0.01},
        {
            "name": "fit/batch_size",
            "kind": "choice",
            "values": [16, 32],
            "when": {"name": "units", "in": [8]},
        },
    ]
    answer = created(api, spec_of(code, space=rows))
    assert answer.status_code == 201, answer.content
    space = answer.json()["spec"]["search"]["space"]
    assert [(row["name"], row["kind"]) for row in space] == [
        ("units", "int"),
        ("rate", "fixed"),
        ("dropout", "boolean"),
        ("fit/batch_size", "choice"),
    ]
    assert space[0]["max"] == 16
    spec = ExperimentSpec.model_validate(answer.json()["spec"])
    trial = apply_values(spec, {"units": 8, "fit/batch_size": 16})
    assert isinstance(trial.model, CodeModel)
    assert (trial.fit.batch_size, trial.model.hyperparameters) == (16, {"units": 8})


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"search": {"space": [{"name": "unit", "kind": "int", "min": 8, "max": 16}]}},
        "/spec/search/space/0/name",
    ),
    (
        {"search": {"space": [{"name": "units", "kind": "int", "min": 8, "max": 64, "step": 8}]}},
        "/spec/search/space/0/max",
    ),
    ({"search": {"objective": {"metric": "val_acc", "direction": "max"}}}, "/spec/search/objective/metric"),
    ({"search": {"objective": {"metric": "val_f1"}}}, "/spec/search/objective/direction"),
    ({"fit": {"epochs": 3, "learning_rate": 0.5}}, "/spec/fit/learning_rate"),
    ({"search": {"space": [field("learning_rate", 0.1, 0.2)]}}, "/spec/search/space/0/name"),
    ({"search": {"space": [field("augmentation/zoom", 0.1, 0.2)]}}, "/spec/search/space/0/name"),
    ({"search": {"space": [field("batchsize", 16, 32)]}}, "/spec/search/space/0/name"),
    ({"search": {"space": [field("batch_size", 0, 32)]}}, "/spec/search/space/0"),
    ({"precision": {"policy": "mixed_bfloat16"}}, "/spec/precision"),
]


def test_a_setting_that_does_not_fit_the_code_is_refused(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    for change, pointer in REFUSED:
        spec = spec_of(code)
        for section, fields in change.items():
            spec[section] = {**spec.get(section, {}), **fields}
        assert set(pointers(created(api, spec))) == {pointer}, change


def test_code_without_the_entry_or_of_another_project_is_refused(api: Client, code: str) -> None:
    wrong = spec_of(code)
    wrong["model"]["entry"] = "other"
    assert pointers(created(api, wrong)) == ["/spec/model/entry"]
    wrong = spec_of("f" * 64)
    assert pointers(created(api, wrong)) == ["/spec/model/digest"]


def submitted(api: Client, spec: dict[str, Any]) -> Job:
    answer = created(api, spec)
    assert answer.status_code == 201, answer.content
    job = api.post(f"/api/v1/experiments/{answer.json()['id']}/submit", content_type="application/json")
    assert job.status_code == 202, job.content
    return Job.objects.get(pk=job.json()["job"])


def test_a_search_without_a_dry_build_does_it_first(api: Client, code: str, worker: PretendWorker) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    pipeline.advance(root)
    job = Job.objects.get(kind="dry_build")
    root.refresh_from_db()
    assert root.why_waiting == f"Its hyperparameters are found by a dry build of its code: job {job.pk}."
    finish(worker)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.revision is not None and root.revision.reason == "the space that the code declares"
    assert [row.name for row in root.revision.spec.search.space] == ["units", "rate", "dropout"]  # type: ignore[union-attr]
    # The next one knows the space at once.
    second = submitted(api, spec_of(code))
    pipeline.advance(second)
    assert Job.objects.filter(kind="dry_build").count() == 1


@pytest.mark.parametrize(
    ("built", "error", "code_of_error", "words"),
    [
        (None, {"code": "code_build", "message": "it returned nothing"}, "code_build", "it returned nothing"),
        (BUILT.model_copy(update={"space": ()}), None, "empty_space", "declares no hyperparameters"),
        (BUILT.model_copy(update={"metrics": ("val_loss",)}), None, "bad_spec", "'val_f1' is not measured"),
    ],
)
def test_a_search_whose_dry_build_shows_no_way_fails_with_its_cause(
    api: Client, code: str, worker: PretendWorker, built: Any, error: Any, code_of_error: str, words: str
) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    finish(worker, built, error)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.state == "failed"
    assert root.error is not None and root.error["code"] == code_of_error
    assert words in root.error["message"]


@pytest.mark.parametrize(("built", "state"), [(BUILT, "queued"), (None, "failed")])
def test_the_end_of_a_dry_build_wakes_the_searches_that_wait_for_it(
    api: Client,
    code: str,
    worker: PretendWorker,
    django_capture_on_commit_callbacks: Any,
    built: BuiltModel | None,
    state: str,
) -> None:
    roots = [submitted(api, spec_of(code)), submitted(api, spec_of(code))]
    for root in roots:
        pipeline.advance(root)
    assert Job.objects.filter(kind="dry_build").count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        finish(worker, built, {"code": "code_build", "message": "it returned nothing"})
    for root in roots:
        root.refresh_from_db()
        assert (root.state, root.why_waiting) == (state, "" if built else root.why_waiting)
        assert (root.revision is not None and root.revision.number == 2) == (built is not None)


def test_a_search_over_fields_of_fit_alone_needs_no_space_of_its_code(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"space": ()}))
    assert pointers(created(api, spec_of(code))) == ["/spec/search"]
    assert created(api, spec_of(code, space=[field("batch_size", 16, 32)])).status_code == 201


def test_a_range_of_the_code_cannot_be_widened_and_the_answer_says_so(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    narrower = {"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}
    root = submitted(api, spec_of(code, space=[narrower]))
    (trial,) = factories.make_trials(root, 1)
    Trial.objects.filter(pk=trial.pk).update(values={"units": 16, "rate": 0.1, "dropout": True})
    Job.objects.filter(pk=root.pk).update(state="completed")
    found = api.get(f"/api/v1/jobs/{root.pk}/answer").json()
    assert (found["at_edge"], found["at_declared_edge"]) == (["units", "rate"], ["rate"])
    page = text_of(api.get(f"/jobs/{root.pk}"))
    assert "Widen the range… the best value of units is at the bound" in page
    assert "Declare a wider range of rate in the code" in page
    assert root.experiment is not None
    experiment = api.get(f"/p/yard/experiments/{root.experiment.pk}").content.decode()
    assert f'href="/code/{code}?project=yard"' in experiment


@pytest.mark.parametrize("one_call", [False, True])
def test_a_training_that_cannot_be_continued_is_named_before_it_is_paused(
    api: Client, code: str, worker: PretendWorker, one_call: bool
) -> None:
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"one_call": one_call}))
    body = {"project": "yard", "spec": spec_of(code)}
    plan = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()["plan"]
    found = [each for each in plan["warnings"] if "one call of fit" in each["message"]]
    assert [each["pointer"] for each in found] == ["/model/entry"] * one_call
    assert all(has_next_step(each["message"]) for each in found)
    root = submitted(api, spec_of(code))
    Job.objects.filter(pk=root.pk).update(state="running", started=root.queued)
    assert ("Pause this job?" in api.get(f"/jobs/{root.pk}").content.decode()) == one_call


def test_a_search_that_is_retried_builds_again(api: Client, code: str, worker: PretendWorker) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    finish(worker, None, {"code": "code_build", "message": "no"})
    root.refresh_from_db()
    pipeline.advance(root)
    assert api.post(f"/api/v1/jobs/{root.pk}/retry").status_code == 202
    root.refresh_from_db()
    pipeline.advance(root)
    finish(worker)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.state != "failed" and len(root.revision.spec.search.space) == 3  # type: ignore[union-attr]


def test_a_member_may_not_run_a_dry_build_again(
    api: Client, code: str, worker: PretendWorker, people: People
) -> None:
    job = ask(api, code).json()["job"]
    finish(worker, None, {"code": "code_build", "message": "no"})
    assert browser_of(people.member).post(f"/api/v1/jobs/{job}/retry").status_code == 403
    assert api.post(f"/api/v1/jobs/{job}/retry").status_code == 202


def test_values_without_a_search_are_checked(api: Client, code: str, worker: PretendWorker) -> None:
    ask(api, code)
    finish(worker)
    spec = spec_of(code)
    del spec["search"]
    spec["model"]["hyperparameters"] = {"units": 16}
    assert created(api, spec).status_code == 201
    spec["model"]["hyperparameters"] = {"units": 500, "unit": 3}
    assert pointers(created(api, spec)) == [
        "/spec/model/hyperparameters/units",
        "/spec/model/hyperparameters/unit",
    ]


def test_a_task_has_the_files_of_its_code(
    api: Client, code: str, worker: PretendWorker, tmp_path: Any
) -> None:
    from jobs.actions.runs import schedule, tasks

    ask(api, code)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    task = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert task.code is not None
    version = CodeVersion.objects.get()
    assert (task.code.digest, [file.path for file in task.code.files]) == (version.digest, ["model.py"])


def test_a_worker_without_a_sandbox_gets_no_dry_build(api: Client, code: str, people: People) -> None:
    from jobs.actions.runs import schedule

    weak = PretendWorker(slots=1)
    job = ask(api, code).json()["job"]
    schedule.place_jobs()
    assert weak.claim_all() == []
    assert "needs the sandbox" in Job.objects.get(pk=job).why_waiting
