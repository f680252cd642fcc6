"""Dry builds of own code: requests, results that are used again, and searches that wait for one."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import CodeVersion, DatasetVersion, Job
from jobs.spec.checks import normalization
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.space.values import apply_values
from tests.code.dry_builds import BUILT, SPACE, ask, created, field, finish, pointers, spec_of
from tests.code.same_time import before_lock
from tests.jobs.yard import PretendWorker
from tests.markup import one_line, text_of
from tests.people import People, browser_of
from tests.present import present


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
    answer = ask(api, code).json()
    assert (answer["state"], answer["job"]) == ("completed", first.json()["job"])
    assert [row["name"] for row in answer["built"]["space"]] == ["units", "rate", "dropout"]
    assert answer["unused"]["/fit/optimizer"] == "the code compiles its model"
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
    assert "Building the model failed: no" in text_of(api.get(f"/jobs/{first}"))
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
    (
        {"precision": {"overrides": [{"match": "a", "policy": "mixed_bfloat16"}]}},
        "/spec/precision/overrides",
    ),
    ({"precision": {"policy": "float16"}}, "/spec/precision/policy"),
    ({"precision": {"policy": "mixed_float16", "loss_scale": 128}}, "/spec/precision/loss_scale"),
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


def test_a_person_adds_a_hyperparameter_that_the_dry_build_has_not_found(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    row = {
        "name": "momentum",
        "kind": "float",
        "min": 0.1,
        "max": 0.9,
        "when": {"name": "dropout", "in": [True]},
    }
    rows = [{"name": "dropout", "kind": "boolean"}, row]
    answer = created(api, spec_of(code, space=rows))
    assert answer.status_code == 201, answer.content
    names = [each["name"] for each in answer.json()["spec"]["search"]["space"]]
    assert names == ["units", "rate", "dropout", "momentum"]
    body = {"project": "yard", "spec": spec_of(code, space=rows)}
    checked = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()
    (warned,) = [w["message"] for w in checked["plan"]["warnings"] if "momentum" in w["message"]]
    assert "has not found 'momentum', so it has no effect unless the code asks for it" in warned
    spec = ExperimentSpec.model_validate(answer.json()["spec"])
    trial = apply_values(spec, {"units": 8, "momentum": 0.5})
    assert isinstance(trial.model, CodeModel)
    assert trial.model.hyperparameters == {"units": 8, "momentum": 0.5}
    fixed = spec_of(code)
    fixed["model"]["hyperparameters"] = {"momentum": 0.5}
    space = created(api, fixed).json()["spec"]["search"]["space"]
    assert space[-1] == {"name": "momentum", "kind": "fixed", "value": 0.5}


def test_results_of_earlier_rules_are_found_for_their_jobs_and_built_again_for_new_ones(
    api: Client, code: str, worker: PretendWorker
) -> None:
    from jobs.queries.code import dry_builds

    ask(api, code)
    finish(worker)
    job = Job.objects.get(kind="dry_build")
    spec = ExperimentSpec.model_validate({**spec_of(code), "model": job.payload_json["model"]})
    version = DatasetVersion.objects.get()
    request = dry_builds.dry_build_request(present(job.project), spec, version, present(version.profile))
    assert request.payload.key == job.payload_json["key"]
    for key in request.earlier_keys:
        Job.objects.filter(pk=job.pk).update(payload_json={**job.payload_json, "key": key})
        assert dry_builds.build_result(request) is None
        assert dry_builds.built_before(request) is not None
    assert ask(api, code).json()["state"] == "queued"


def test_a_spec_without_normalized_rows_is_the_same_as_before_they_were_known() -> None:
    body = {"version": 1, "data": {"dataset": "iris"}, "fit": {"epochs": 4}}
    model = {"kind": "code", "digest": "a" * 64, "entry": "build_model"}
    # By release 0.11.
    digest = "09f706bc59f3414d599c2a7a693a61ee317d2ac928ab7551dc198cbe84f6e1d0"
    specs = [
        ExperimentSpec.model_validate({**body, "model": {**model, **more}})
        for more in ({}, {"normalize": False}, {"normalize": True})
    ]
    assert [spec.digest() == digest for spec in specs] == [True, True, False]
    # The keys of dry builds and of estimates come from the dump.
    assert ["normalize" in spec.model.model_dump() for spec in specs] == [False, False, True]


def test_rows_are_normalized_in_a_dry_build_of_its_own(api: Client, code: str, worker: PretendWorker) -> None:
    first = ask(api, code).json()["job"]
    assert ask(api, code, normalize=False).json()["job"] == first
    finish(worker)
    second = ask(api, code, normalize=True).json()["job"]
    assert second != first and "Rows normalized" in text_of(api.get(f"/jobs/{second}"))
    finish(worker, BUILT.model_copy(update={"index_layers": ("words",)}))
    spec = spec_of(code)
    spec["model"]["normalize"] = True
    answer = created(api, spec)
    assert pointers(answer) == ["/spec/model/normalize"]
    assert "the layer words takes values of the rows as indices" in answer.content.decode()
    del spec["model"]["normalize"]
    assert created(api, spec).status_code == 201


@pytest.mark.parametrize(("kinds", "is_refused"), [(("tokens",), True), (("tokens", "number"), False)])
def test_rows_of_words_alone_cannot_be_normalized(
    api: Client, code: str, kinds: tuple[str, ...], is_refused: bool
) -> None:
    profile = present(DatasetVersion.objects.get().profile)
    blocks = [
        {"column": str(start), "start": start, "positions": 1, "kind": kind}
        for start, kind in enumerate(kinds)
    ]
    rows = Profile.model_validate({**profile.model_dump(), "blocks": blocks})
    sent = spec_of(code)
    sent["model"]["normalize"] = True
    spec = ExperimentSpec.model_validate(sent)
    found = [problem.pointer for problem in normalization.problems(spec, rows, None)]
    assert found == ["/model/normalize"] * is_refused
