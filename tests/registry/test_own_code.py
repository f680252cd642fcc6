"""Versions whose file needs code of users: rights, the binding of approvals, and deletions."""

import re
from html import unescape
from pathlib import Path
from typing import Any, cast
from typing import get_args as values_of

import pytest

from jobs import signing
from jobs.actions.code.code import digest_of
from jobs.actions.registry import promotions, registration
from jobs.actions.runs import control, results
from jobs.actions.runs.kind_actions import actions_of
from jobs.actions.runs.tasks import task_for
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict, Forbidden, InUse
from jobs.kinds.gate.payload import GateTask
from jobs.kinds.register.payload import RegisterResult, RegisterTask
from jobs.kinds.rows import belonging_to
from jobs.messages import release
from jobs.messages.environments import InstalledPackage, InstalledSet
from jobs.messages.release import SignedRelease, identity_of
from jobs.messages.sandbox import FORMER_LEVEL, Level
from jobs.models import (
    AuditEvent,
    CodeVersion,
    Job,
    Membership,
    ModelVersion,
    PackageSet,
    ReleaseRecord,
    Role,
    User,
)
from jobs.queries.code import sandboxes
from jobs.queries.storage import references
from jobs.store import sha256_of, store
from tests import factories
from tests.api.conftest import Caller
from tests.api.test_core import keras_archive
from tests.api.test_registry_api import make_service
from tests.markup import text_of
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, SIGNATURE, Yard, judge

PACKAGES = {"path": "requirements.txt", "requirements": ["einops==0.8.1"]}


@pytest.fixture
def trainer(yard: Yard) -> User:
    """A person of the project who may have code executed."""
    user = User.objects.create_user("trainer")
    Membership.objects.create(project=yard.project, user=user, role=Role.TRAINER)
    return user


def code_of(yard: Yard, source: str = "", **found: Any) -> CodeVersion:
    """Make a version of code with the digest of its files."""
    code = factories.make_code("layers", project=yard.project, by=yard.owner, source=source)
    stored = [(file.path, sha256_of(store().path(file.artifact_id))) for file in code.files.all()]
    code.digest, code.found_json = digest_of(stored), found
    code.save(update_fields=["digest", "found_json"])
    return code


def uploaded(yard: Yard, by: User, code: CodeVersion | None, *, needs: bool = True) -> ModelVersion:
    """Add an upload with code, whose validation has found out whether the file needs it."""
    artifact = yard.new_bytes()
    stored = sha256_of(store().path(artifact.digest))
    version = registration.add_uploaded(yard.model, stored, code=code, by=by)
    registration.mark_validated(version.pk, signature=SIGNATURE, needs_code=needs)
    version.refresh_from_db()
    return version


def released(yard: Yard, trainer: User, version: ModelVersion) -> SignedRelease:
    """Promote a version, and return its release."""
    request = promotions.request(version, stage="production", by=trainer)
    judge(request, GOOD_GATES)
    promotions.approve(request, by=yard.approver)
    return SignedRelease.model_validate(ReleaseRecord.objects.latest("pk").body)


def test_only_who_may_run_code_adds_a_version_with_code(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    with pytest.raises(Forbidden, match="trainer"):
        uploaded(yard, yard.member, code)
    version = uploaded(yard, trainer, code)
    assert version.lineage["code"] == code.digest
    assert version.code == code
    with pytest.raises(Forbidden):
        promotions.request(version, stage="production", by=yard.member)
    with pytest.raises(Forbidden):
        registration.queue_description(version, by=yard.member)


def test_code_of_another_project_is_unknown(yard: Yard, trainer: User) -> None:
    other = factories.make_project(owner=trainer)
    foreign = factories.make_code(project=other, by=trainer)
    with pytest.raises(BadInput, match="no code with the digest"):
        registration.code_for_upload(yard.model, foreign.digest, by=trainer)


def test_the_identity_covers_weights_code_and_packages(yard: Yard, trainer: User) -> None:
    code, packaged = code_of(yard), code_of(yard, packages=PACKAGES)
    plain = uploaded(yard, trainer, code, needs=False)
    assert plain.identity == plain.artifact_id
    found = {uploaded(yard, trainer, each).identity for each in (code, packaged)}
    other = {identity_of("a" * 64, code.digest), identity_of("b" * 64, code.digest), plain.artifact_id}
    assert len(found | other) == 5
    assert packaged.found.packages is not None
    with_packages = identity_of("a" * 64, code.digest, packaged.found.packages.digest)
    assert with_packages not in other


def test_an_approval_binds_the_identity_and_signs_the_files(yard: Yard, trainer: User) -> None:
    code = code_of(yard, packages=PACKAGES)
    version = uploaded(yard, trainer, code)
    signed = released(yard, trainer, version)
    (served,) = signed.release.versions
    assert served.identity == version.identity != version.artifact_id
    assert served.code is not None
    assert served.code.requirements == ("einops==0.8.1",)
    assert served.code.minimum == "landlock"
    assert {(file.path, file.digest) for file in served.code.files} == {
        (file.path, file.artifact_id) for file in code.files.all()
    }
    decision = version.promotions.get().decisions.get(verdict="approve")
    assert decision.digest == version.identity
    approval = AuditEvent.objects.filter(action="promotion.approve").latest("pk")
    assert approval.detail["digest"] == version.identity
    # With another digest of the code, the signature is not valid.
    assert signing.is_signed(signed)
    forged = signed.model_dump(mode="json")
    forged["release"]["versions"][0]["code"]["files"][0]["digest"] = "0" * 64
    assert not signing.is_signed(SignedRelease.model_validate(forged))


def test_an_approval_binds_the_installed_packages_and_shows_what_differs(
    yard: Yard, trainer: User, tmp_path: Path
) -> None:
    code = code_of(yard, packages=PACKAGES)
    before = uploaded(yard, trainer, code)
    unbound = released(yard, trainer, before)
    # As a release of an earlier version, its signed bytes have no packages, and it is still valid.
    assert b'"packages"' not in unbound.release.signed_bytes()
    assert signing.is_signed(unbound)
    einops = InstalledPackage(name="einops", version="0.8.1", digest="e" * 64)
    more = InstalledPackage(name="more", version="2")
    found = [InstalledSet(python="3.13", platform="p", for_engine=True, packages=each)
             for each in ((einops,), (einops.model_copy(update={"digest": "f" * 64}), more))]  # fmt: skip
    bound = [uploaded(yard, trainer, code) for _ in found]
    for version, packages in zip(bound, found, strict=True):
        version.packages = PackageSet.objects.create(
            digest=packages.digest, packages_json=[each.model_dump() for each in packages.packages]
        )
        version.save(update_fields=["packages"])
    by_list = [
        identity_of(each.artifact_id, code.digest, each.requirements_digest) == each.identity
        for each in (before, *bound)
    ]
    assert by_list == [True, False, False]
    packages_of = f"/api/v1/models/{yard.model.name}/versions/%d/packages"
    answer = browser_of(trainer).get(packages_of % bound[0].number).json()
    # Those of the present version are unknown.
    assert (answer["compared_with"], answer["changes"], len(answer["packages"])) == (None, [], 1)
    signed = released(yard, trainer, bound[0])
    served = next(each for each in signed.release.versions if each.number == bound[0].number)
    assert served.identity == bound[0].identity
    assert served.code is not None and served.code.packages == (einops,)
    forged = signed.model_dump(mode="json")
    forged["release"]["versions"][-1]["code"]["packages"][0]["digest"] = "0" * 64
    assert not signing.is_signed(SignedRelease.model_validate(forged))
    # Its gates execute each version with its own packages, whatever is recorded for its code by now.
    request = promotions.request(bound[1], stage="production", by=trainer)
    assert request.gate_job is not None
    attempt = factories.make_attempt(request.gate_job, factories.make_worker())
    task = cast(GateTask, task_for(attempt.pk, folder=tmp_path, threads=1))
    used = [each.code.packages for each in task.models if each.code is not None]
    assert used == [found[1].packages, found[0].packages]
    judge(request, GOOD_GATES)
    browser = browser_of(yard.approver)
    page = text_of(browser.get(f"/approvals/{request.pk}"))
    assert "einops 0.8.1, with other files" in page and "more 2 is new" in page
    answer = browser.get(packages_of % bound[1].number).json()
    assert answer["compared_with"] == bound[0].number
    assert [each["name"] for each in answer["changes"]] == ["einops", "more"]
    page = text_of(browser.get(f"/models/{yard.model.name}/versions/{bound[1].number}"))
    assert "2 installed" in page and "built from source" in page


def test_a_version_that_needs_no_code_is_released_like_any_other(yard: Yard, trainer: User) -> None:
    version = uploaded(yard, trainer, code_of(yard), needs=False)
    (served,) = released(yard, trainer, version).release.versions
    assert served.code is None
    assert "code" not in served.model_dump(mode="json")


def test_altered_code_is_not_approved(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    request = promotions.request(uploaded(yard, trainer, code), stage="production", by=trainer)
    judge(request, GOOD_GATES)
    file = store().path(code.files.get().artifact_id)
    file.chmod(0o600)
    file.write_text("altered")
    with pytest.raises(Conflict, match="The code of digits v1 has digest"):
        promotions.approve(request, by=yard.approver)


def test_code_that_a_version_names_is_not_deleted(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    version = uploaded(yard, trainer, code)
    with pytest.raises(InUse) as refused:
        deletions.delete(code, by=yard.owner)
    assert [each.why for each in refused.value.referrers] == ["cannot be loaded without it"]
    kept = set(code.files.values_list("artifact", flat=True))
    assert not kept & set(references.unreferenced_artifacts().values_list("pk", flat=True))

    Job.objects.all().delete()
    deletion = deletions.delete(version, by=yard.owner)
    of_code = deletions.delete(code, by=yard.owner)
    with pytest.raises(Conflict, match="before code"):
        deletions.restore(deletion, by=yard.owner)
    deletions.restore(of_code, by=yard.owner)
    deletions.restore(deletion, by=yard.owner)


def test_a_validation_gets_the_code_and_the_strict_checks_of_uploads(
    yard: Yard, trainer: User, tmp_path: Any
) -> None:
    code = code_of(yard)
    version = uploaded(yard, trainer, code)
    job = Job.objects.filter(belonging_to("version", [version.pk])).get()
    task = cast(
        RegisterTask,
        task_for(factories.make_attempt(job, factories.make_worker()).pk, folder=tmp_path, threads=1),
    )
    assert task.foreign
    assert task.code is not None
    assert task.code.digest == code.digest


def test_a_process_that_has_run_code_does_not_decide_that_a_file_needs_none(
    yard: Yard, trainer: User, tmp_path: Any
) -> None:
    stored = sha256_of(store().path(yard.new_bytes().digest))
    version = registration.add_uploaded(yard.model, stored, code=code_of(yard), by=trainer)
    first = Job.objects.filter(belonging_to("version", [version.pk])).get()
    actions_of(first).on_done(first, RegisterResult(signature=SIGNATURE, needs_code=False))
    version.refresh_from_db()
    assert version.state == "validating"
    second = Job.objects.filter(belonging_to("version", [version.pk])).exclude(pk=first.pk).get()
    assert not sandboxes.needs_sandbox(second)
    attempt = factories.make_attempt(second, factories.make_worker())
    task = cast(RegisterTask, task_for(attempt.pk, folder=tmp_path, threads=1))
    assert (task.code, task.foreign) == (None, True)
    actions_of(second).on_done(second, RegisterResult(signature=SIGNATURE, needs_code=False))
    version.refresh_from_db()
    assert (version.state, version.needs_code) == ("candidate", False)
    assert Job.objects.filter(belonging_to("version", [version.pk])).count() == 2


def test_a_signature_that_is_none_fails_the_validation(yard: Yard, trainer: User) -> None:
    """A process that has run code reports it. The attempt must end, whatever it is."""
    stored = sha256_of(store().path(yard.new_bytes().digest))
    version = registration.add_uploaded(yard.model, stored, code=code_of(yard), by=trainer)
    job = Job.objects.filter(belonging_to("version", [version.pk])).get()
    error = results.apply_result(job, {"signature": {"inputs": 1}, "needs_code": True})
    assert error is not None
    assert (error["code"], "signature" in error["message"]) == ("bad_result", True)
    version.refresh_from_db()
    assert version.state == "invalid"


def test_only_who_may_run_code_validates_it_again(yard: Yard, trainer: User) -> None:
    version = uploaded(yard, trainer, code_of(yard))
    job = Job.objects.filter(belonging_to("version", [version.pk])).get()
    assert sandboxes.needs_sandbox(job)
    assert [sandboxes.may_run(by, job) for by in (yard.member, trainer)] == [False, True]
    control.stop(job, by=yard.member)
    job.refresh_from_db()
    with pytest.raises(Forbidden, match="trainer"):
        control.retry(job, by=yard.member)
    control.retry(job, by=trainer)


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
        return [(each.name, each.code.digest) for each in task.models if each.code is not None]

    ours, theirs = ("challenger", second.digest), ("champion", first.digest)
    task = task_of(second)
    assert models_of(task) == [ours, theirs]
    assert task.challenger_signature == SIGNATURE
    assert models_of(task_of(first)) == [("challenger", first.digest), theirs]
    assert models_of(task_of(None)) == [theirs]


def form(code: str) -> tuple[bytes, str]:
    parts = (
        b'Content-Disposition: form-data; name="file"; filename="m.keras"\r\n\r\n' + keras_archive(),
        f'Content-Disposition: form-data; name="code"\r\n\r\n{code}'.encode(),
    )
    return b"".join(
        b"--b\r\n" + part + b"\r\n" for part in parts
    ) + b"--b--\r\n", "multipart/form-data; boundary=b"


def test_an_upload_over_rest_names_its_code(yard: Yard, trainer: User) -> None:
    code = code_of(yard)
    path = "/models/digits/versions"
    made = Caller(trainer, ("read", "write")).raw("POST", path, *form(code.digest))
    assert made.status_code == 201, made.content
    assert made.json()["code"] == {
        "digest": code.digest, "name": "layers", "needed": False, "requirements_digest": None,
        "reported_metrics": False,
        "packages_digest": None,
    }  # fmt: skip
    assert made.json()["lineage"]["code_name"] == "layers"
    refused = Caller(yard.member, ("read", "write")).raw("POST", path, *form(code.digest))
    assert refused.status_code == 403
    unknown = Caller(trainer, ("read", "write")).raw("POST", path, *form("0" * 64))
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/code")


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
        shown = text_of(browser_of(user).get(f"/models/digits/versions/{version.number}"))
        assert "needed by the file" in shown
        assert text in shown
    signed = released(yard, trainer, version)
    assert signed.release.production == version.number
    shown = text_of(browser_of(yard.approver).get(f"/approvals/{version.promotions.get().pk}"))
    assert "runs in a sandbox" in shown


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

    def shown(address: str) -> str:
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

    assert "reported by its code" in shown(f"/models/digits/versions/{version.number}")
    before = shown(f"/approvals/{request.pk}")
    assert "reported by the code: not measured outside of its sandbox" in before
    assert "0.9321" in before
    assert "objective that its own code reported" in before

    Job.objects.filter(pk=request.gate_job.pk).update(
        results_json={"metrics": {"challenger": {"accuracy": 0.3456}}}
    )
    factories.make_job_artifact(request.gate_job, role="evaluation", name="evaluation.json")
    after = shown(f"/approvals/{request.pk}")
    assert "of the predictions that the gates received; the whole evaluation" in after
    assert "0.3456" in after
    assert "0.9321" not in after
    # The page that was open before gets them together with the gates.
    part = shown(f"/approvals/{request.pk}?part=gates")
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
    for found, is_told in ((measured, True), ({**measured, "champion": {"accuracy": 0.2}}, False)):
        Job.objects.filter(pk=request.gate_job.pk).update(results_json={"metrics": found})
        assert (unmeasured in text_of(browser.get(address))) == is_told


def test_an_upload_by_the_form_names_its_code(yard: Yard, trainer: User, tmp_path: Any) -> None:
    code, file = code_of(yard), tmp_path / "m.keras"
    file.write_bytes(keras_archive())
    with file.open("rb") as opened:
        browser_of(trainer).post("/models/digits/upload", {"file": opened, "code": code.digest})
    assert ModelVersion.objects.get().code == code


def test_the_levels_of_releases_are_those_of_records_of_sandboxes() -> None:
    assert set(values_of(release.SandboxLevel)) == {*(level.value for level in Level), FORMER_LEVEL}
