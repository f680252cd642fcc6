"""Versions whose file needs user code: rights, what approvals bind, and deletions."""

from typing import Any, cast

import pytest

from jobs.actions.code.code import digest_of
from jobs.actions.registry import promotions, registration
from jobs.actions.runs import control, results
from jobs.actions.runs.kind_actions import actions_of
from jobs.actions.runs.tasks import task_for
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict, Forbidden, InUse
from jobs.kinds.register.payload import RegisterResult, RegisterTask
from jobs.kinds.rows import belonging_to
from jobs.models import (
    CodeVersion,
    Job,
    Membership,
    ModelVersion,
    Role,
    User,
)
from jobs.queries.code import sandboxes
from jobs.queries.storage import references
from jobs.store import sha256_of, store
from tests import factories
from tests.registry.conftest import GOOD_GATES, SIGNATURE, Yard, judge


@pytest.fixture
def trainer(yard: Yard) -> User:
    """A project member who may have code executed."""
    user = User.objects.create_user("trainer")
    Membership.objects.create(project=yard.project, user=user, role=Role.TRAINER)
    return user


def code_of(yard: Yard, source: str = "", **findings: Any) -> CodeVersion:
    """Make a code version with the digest of its files."""
    code = factories.make_code("layers", project=yard.project, by=yard.owner, source=source)
    stored = [(file.path, sha256_of(store().path(file.artifact_id))) for file in code.files.all()]
    code.digest, code.found_json = digest_of(stored), findings
    code.save(update_fields=["digest", "found_json"])
    return code


def uploaded(yard: Yard, by: User, code: CodeVersion | None, *, needs: bool = True) -> ModelVersion:
    """Add an upload with code, whose validation has found out whether the file needs it."""
    artifact = yard.new_bytes()
    stored = sha256_of(store().path(artifact.digest))
    version = registration.add_uploaded(yard.model, stored, code=code, by=by).version
    registration.mark_validated(version.pk, signature=SIGNATURE, needs_code=needs)
    version.refresh_from_db()
    return version


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
    assert [referrer.why for referrer in refused.value.referrers] == ["cannot be loaded without it"]
    files = set(code.files.values_list("artifact", flat=True))
    assert not files & set(references.unreferenced_artifacts().values_list("pk", flat=True))

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
    version = registration.add_uploaded(yard.model, stored, code=code_of(yard), by=trainer).version
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
    version = registration.add_uploaded(yard.model, stored, code=code_of(yard), by=trainer).version
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
