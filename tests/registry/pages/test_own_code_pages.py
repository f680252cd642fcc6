"""The pages and requests that show version code, and the gates that execute it."""

import re
from html import unescape
from pathlib import Path
from typing import Any, cast
from typing import get_args as values_of

import pytest

from jobs.actions.registry import promotions, registration
from jobs.actions.runs.tasks import task_for
from jobs.kinds.gate.payload import GateTask
from jobs.kinds.register.payload import RegisterPayload, RegisterTask
from jobs.kinds.rows import belonging_to
from jobs.messages import release
from jobs.messages.sandbox import FORMER_LEVEL, Level
from jobs.models import (
    CodeVersion,
    Job,
    Membership,
    ModelVersion,
    Role,
    User,
)
from jobs.queries.code import sandboxes
from jobs.queries.registry import versions
from jobs.queries.storage import references
from jobs.store import store
from tests import factories
from tests.api.conftest import Caller
from tests.api.test_idempotency import keras_archive
from tests.api.test_registry_api import make_service
from tests.markup import text_of
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, SIGNATURE, Yard, judge
from tests.registry.test_approved_code import released
from tests.registry.test_own_code import code_of, uploaded


@pytest.fixture
def trainer(yard: Yard) -> User:
    """A project member who may have code executed."""
    user = User.objects.create_user("trainer")
    Membership.objects.create(project=yard.project, user=user, role=Role.TRAINER)
    return user


def test_gates_that_execute_code_wait_for_a_worker_with_a_sandbox(yard: Yard, trainer: User) -> None:
    version = uploaded(yard, trainer, code_of(yard))
    request = promotions.request(version, stage="production", by=trainer)
    assert request.gate_job is not None and sandboxes.needs_sandbox(request.gate_job)
    judge(request, GOOD_GATES)
    promotions.approve(request, by=yard.approver)
    # The champion has code now.
    after = promotions.request(uploaded(yard, trainer, None, needs=False), stage="production", by=trainer)
    assert after.gate_job is not None and sandboxes.needs_sandbox(after.gate_job)


def test_gates_get_the_code_of_challenger_and_champion(yard: Yard, trainer: User, tmp_path: Any) -> None:
    first, second = code_of(yard, "x = 1\n"), code_of(yard, "x = 2\n")
    released(yard, trainer, uploaded(yard, trainer, first))

    def task_of(code: CodeVersion | None) -> GateTask:
        version = uploaded(yard, trainer, code) if code is not None else yard.version()
        request = promotions.request(version, stage="production", by=trainer)
        assert request.gate_job is not None
        attempt = factories.make_attempt(request.gate_job, factories.make_worker())
        return cast(GateTask, task_for(attempt.pk, folder=tmp_path, threads=1))

    def models_of(task: GateTask) -> list[tuple[str, str]]:
        # The process of the task itself executes no code.
        assert task.code is None
        return [(model.name, model.code.digest) for model in task.models if model.code is not None]

    ours, theirs = ("challenger", second.digest), ("champion", first.digest)
    task = task_of(second)
    assert models_of(task) == [ours, theirs]
    assert task.challenger_signature == SIGNATURE
    assert models_of(task_of(first)) == [("challenger", first.digest), theirs]
    assert models_of(task_of(None)) == [theirs]


def form(code: str, sample: bytes = b"") -> tuple[bytes, str]:
    parts = [
        b'Content-Disposition: form-data; name="file"; filename="m.keras"\r\n\r\n' + keras_archive(),
        f'Content-Disposition: form-data; name="code"\r\n\r\n{code}'.encode(),
    ]
    if sample:
        parts.append(b'Content-Disposition: form-data; name="sample"; filename="rows.json"\r\n\r\n' + sample)
    return b"".join(
        b"--b\r\n" + part + b"\r\n" for part in parts
    ) + b"--b--\r\n", "multipart/form-data; boundary=b"


def test_an_upload_over_rest_names_its_code(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    path = "/models/digits/versions"
    upload = Caller(trainer, ("read", "write")).raw("POST", path, *form(code.digest))
    assert upload.status_code == 201, upload.content
    assert upload.json()["code"] == {
        "digest": code.digest, "name": "layers", "needed": False, "requirements_digest": None,
        "reported_metrics": False,
        "packages_digest": None,
    }  # fmt: skip
    assert upload.json()["lineage"]["code_name"] == "layers"
    refused = Caller(yard.member, ("read", "write")).raw("POST", path, *form(code.digest))
    assert refused.status_code == 403
    unknown = Caller(trainer, ("read", "write")).raw("POST", path, *form("0" * 64))
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/code")


def test_the_rows_of_a_sender_are_stored_with_the_upload(yard: Yard, trainer: User) -> None:
    path, rows = "/models/digits/versions", b'{"instances": [[1, 2]]}'
    caller = Caller(trainer, ("read", "write"))
    upload = caller.raw("POST", path, *form("", rows))
    assert upload.status_code == 201, upload.content
    version = yard.model.versions.get(number=upload.json()["number"])
    job = Job.objects.get(belonging_to("version", [version.pk]))
    digest = job.payload_as(RegisterPayload).sample
    assert digest is not None and store().path(digest).read_bytes() == rows
    assert job.artifacts.get().artifact_id == digest
    # They are not collected, and a later validation tries the model with the same rows.
    assert references.mentioned_digests([digest]) == {digest}
    assert versions.validation_payload(version, without_code=True).sample == digest
    task = task_for(factories.make_attempt(job, factories.make_worker()).pk, folder=Path(), threads=1)
    assert isinstance(task, RegisterTask) and task.sample == str(store().path(digest))
    refused = caller.raw("POST", path, *form("", b"1, 2, 3"))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/sample")
    assert 'name="sample"' in browser_of(trainer).get("/models/digits").content.decode()


def test_the_prediction_servers_get_the_code_of_released_versions_only(yard: Yard, trainer: User) -> None:
    live, waiting = code_of(yard, "x = 1\n"), code_of(yard, "x = 2\n")
    released(yard, trainer, uploaded(yard, trainer, live))
    uploaded(yard, trainer, waiting)
    service = Caller(make_service(), ("serve",))
    assert service.get(f"/artifacts/{live.files.get().artifact_id}").status_code == 200
    assert service.get(f"/artifacts/{waiting.files.get().artifact_id}").status_code == 404


def test_the_pages_show_the_code(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    assert f'value="{code.digest}"' in browser_of(trainer).get("/models/digits").content.decode()
    assert code.digest not in browser_of(yard.member).get("/models/digits").content.decode()
    version = uploaded(yard, trainer, code)
    for user, text in ((trainer, "Request promotion"), (yard.member, "trainers and admins")):
        page = text_of(browser_of(user).get(f"/models/digits/versions/{version.number}"))
        assert "needed by the file" in page
        assert text in page
    signed = released(yard, trainer, version)
    assert signed.release.production == version.number
    page = text_of(browser_of(yard.approver).get(f"/approvals/{version.promotions.get().pk}"))
    assert "runs in a sandbox" in page


def test_pages_state_who_computed_the_metrics(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    factories.make_dataset("digits")
    spec = {**factories.SEARCH, "model": {"kind": "code", "digest": code.digest, "entry": "build_model"}}
    experiment = factories.make_experiment(project=yard.project, by=trainer, spec=spec)
    job = factories.make_job(by=trainer, experiment=experiment, kind="train", state="completed")
    version = uploaded(yard, trainer, code)
    metrics = {"test": {"accuracy": 0.9321}}
    ModelVersion.objects.filter(pk=version.pk).update(source_job=job, metrics=metrics)
    request = promotions.request(version, stage="production", by=trainer)
    assert request.gate_job is not None

    def page_text(address: str) -> str:
        return text_of(browser_of(yard.approver).get(address))

    # The names of the classes are those of the data, whatever the process with the code reports.
    outputs = [{**SIGNATURE["outputs"][0], "shape": [3]}]
    signature = {**SIGNATURE, "outputs": outputs}
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.VALIDATING)
    registration.mark_validated(
        version.pk, signature=signature, needs_code=True, class_labels=["c", "b", "a"]
    )
    version.refresh_from_db()
    assert version.class_labels == factories.profile()["class_labels"]

    assert "reported by its code" in page_text(f"/models/digits/versions/{version.number}")
    before = page_text(f"/approvals/{request.pk}")
    assert "reported by the code: not measured outside of its sandbox" in before
    assert "0.9321" in before
    assert "objective that its own code reported" in before

    Job.objects.filter(pk=request.gate_job.pk).update(
        results_json={"metrics": {"challenger": {"accuracy": 0.3456}}}
    )
    factories.make_job_artifact(request.gate_job, role="evaluation", name="evaluation.json")
    after = page_text(f"/approvals/{request.pk}")
    assert "of the predictions that the gates received; the whole evaluation" in after
    assert "0.3456" in after
    assert "0.9321" not in after
    # The page that was open before gets them together with the gates.
    part = page_text(f"/approvals/{request.pk}?part=gates")
    assert "of the predictions that the gates received" in part and "0.3456" in part


def test_a_request_links_the_code_of_the_present_version_and_names_metrics_not_of_the_gates(
    yard: Yard, trainer: User
) -> None:
    old, new = code_of(yard), code_of(yard, source="# other\n")
    present = uploaded(yard, trainer, old)
    released(yard, trainer, present)
    experiment = factories.make_experiment(
        project=yard.project,
        by=trainer,
        spec={**factories.SEARCH, "model": {"kind": "code", "digest": new.digest, "entry": "build_model"}},
    )
    job = factories.make_job(by=trainer, experiment=experiment, kind="train", state="completed")
    version = uploaded(yard, trainer, new)
    ModelVersion.objects.filter(pk=version.pk).update(source_job=job)
    version.refresh_from_db()
    request = promotions.request(version, stage="production", by=trainer)
    assert request.gate_job is not None
    address = f"/approvals/{request.pk}"
    browser = browser_of(yard.approver)
    page = browser.get(address).content.decode()
    (compare,) = re.findall(r'href="([^"]+/compare[^"]+)"', page)
    assert f"old={old.digest}" in compare and new.digest in compare
    assert browser.get(unescape(compare)).status_code == 200
    unmeasured = f"those of v{present.number} are from its training, not from these gates"
    measured = {"challenger": {"accuracy": 0.3}}
    for metrics, is_told in ((measured, True), ({**measured, "champion": {"accuracy": 0.2}}, False)):
        Job.objects.filter(pk=request.gate_job.pk).update(results_json={"metrics": metrics})
        assert (unmeasured in text_of(browser.get(address))) == is_told


def test_an_upload_by_the_form_names_its_code(yard: Yard, trainer: User, tmp_path: Any) -> None:
    code, file = code_of(yard), tmp_path / "m.keras"
    file.write_bytes(keras_archive())
    with file.open("rb") as opened:
        browser_of(trainer).post("/models/digits/upload", {"file": opened, "code": code.digest})
    assert ModelVersion.objects.get().code == code


def test_the_levels_of_releases_are_those_of_records_of_sandboxes() -> None:
    assert set(values_of(release.SandboxLevel)) == {*(level.value for level in Level), FORMER_LEVEL}
