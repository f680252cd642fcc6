"""The identity of a version with code, to which an approval is bound."""

from pathlib import Path
from typing import cast

import pytest

from jobs import signing
from jobs.actions.registry import promotions
from jobs.actions.runs.tasks import task_for
from jobs.kinds.gate.payload import GateTask
from jobs.messages.environments import InstalledPackage, InstalledSet
from jobs.messages.release import SignedRelease, identity_of
from jobs.models import (
    AuditEvent,
    Membership,
    ModelVersion,
    PackageSet,
    ReleaseRecord,
    Role,
    User,
)
from tests import factories
from tests.markup import text_of
from tests.people import browser_of
from tests.registry.conftest import GOOD_GATES, Yard, judge
from tests.registry.test_own_code import code_of, uploaded

PACKAGES = {"path": "requirements.txt", "requirements": ["einops==0.8.1"]}


@pytest.fixture
def trainer(yard: Yard) -> User:
    """A project member who may have code executed."""
    user = User.objects.create_user("trainer")
    Membership.objects.create(project=yard.project, user=user, role=Role.TRAINER)
    return user


def released(yard: Yard, trainer: User, version: ModelVersion) -> SignedRelease:
    """Promote a version, and return its release."""
    request = promotions.request(version, stage="production", by=trainer)
    judge(request, GOOD_GATES)
    promotions.approve(request, by=yard.approver)
    return SignedRelease.model_validate(ReleaseRecord.objects.latest("pk").body)


def test_the_identity_covers_weights_code_and_packages(yard: Yard, trainer: User) -> None:
    code, packaged = code_of(yard), code_of(yard, packages=PACKAGES)
    plain = uploaded(yard, trainer, code, needs=False)
    assert plain.identity == plain.artifact_id
    identities = {uploaded(yard, trainer, needed_code).identity for needed_code in (code, packaged)}
    other = {identity_of("a" * 64, code.digest), identity_of("b" * 64, code.digest), plain.artifact_id}
    assert len(identities | other) == 5
    assert packaged.findings.packages is not None
    with_packages = identity_of("a" * 64, code.digest, packaged.findings.packages.digest)
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
    installed_sets = [
        InstalledSet(python="3.13", platform="p", for_engine=True, packages=packages)
        for packages in ((einops,), (einops.model_copy(update={"digest": "f" * 64}), more))
    ]
    bound = [uploaded(yard, trainer, code) for _ in installed_sets]
    for version, packages in zip(bound, installed_sets, strict=True):
        version.packages = PackageSet.objects.create(
            digest=packages.digest, packages_json=[package.model_dump() for package in packages.packages]
        )
        version.save(update_fields=["packages"])
    by_list = [
        identity_of(bound_version.artifact_id, code.digest, bound_version.requirements_digest)
        == bound_version.identity
        for bound_version in (before, *bound)
    ]
    assert by_list == [True, False, False]
    packages_of = f"/api/v1/models/{yard.model.name}/versions/%d/packages"
    answer = browser_of(trainer).get(packages_of % bound[0].number).json()
    # Those of the present version are unknown.
    assert (answer["compared_with"], answer["changes"], len(answer["packages"])) == (None, [], 1)
    signed = released(yard, trainer, bound[0])
    served = next(
        served_version
        for served_version in signed.release.versions
        if served_version.number == bound[0].number
    )
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
    used = [model.code.packages for model in task.models if model.code is not None]
    assert used == [installed_sets[1].packages, installed_sets[0].packages]
    judge(request, GOOD_GATES)
    browser = browser_of(yard.approver)
    page = text_of(browser.get(f"/approvals/{request.pk}"))
    assert "einops 0.8.1, with other files" in page and "more 2 is new" in page
    answer = browser.get(packages_of % bound[1].number).json()
    assert answer["compared_with"] == bound[0].number
    assert [change["name"] for change in answer["changes"]] == ["einops", "more"]
    page = text_of(browser.get(f"/models/{yard.model.name}/versions/{bound[1].number}"))
    assert "2 installed" in page and "built from source" in page


def test_a_version_that_needs_no_code_is_released_like_any_other(yard: Yard, trainer: User) -> None:
    version = uploaded(yard, trainer, code_of(yard), needs=False)
    (served,) = released(yard, trainer, version).release.versions
    assert served.code is None
    assert "code" not in served.model_dump(mode="json")
