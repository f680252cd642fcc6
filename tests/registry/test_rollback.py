from pathlib import Path

import pytest
from django.conf import settings

from jobs import signing
from jobs.actions import promotions, releases
from jobs.contracts.release import SignedRelease
from jobs.errors import BadInput, Conflict, Forbidden
from jobs.models import AuditEvent, ReleaseRecord
from tests.registry.conftest import Yard


def test_rollback_goes_to_the_version_before(yard: Yard) -> None:
    first, second = yard.live(), yard.live()
    record = releases.rollback(yard.endpoint, reason="wrong sevens", by=yard.approver)
    assert (record.version, record.replaced, record.generation) == (first, second, 3)
    assert yard.endpoint.production == first
    assert AuditEvent.objects.get(action="release.rollback").detail["reason"] == "wrong sevens"


def test_rolling_back_twice_never_returns_to_the_bad_one(yard: Yard) -> None:
    first, _second, _third = yard.live(), yard.live(), yard.live()
    releases.rollback(yard.endpoint, reason="bad", by=yard.approver)
    releases.rollback(yard.endpoint, reason="still bad", by=yard.approver)
    assert yard.endpoint.production == first
    with pytest.raises(Conflict, match="no earlier"):
        releases.rollback(yard.endpoint, reason="more", by=yard.approver)


def test_a_version_that_was_rolled_back_is_skipped(yard: Yard) -> None:
    first, second = yard.live(), yard.live()
    releases.rollback(yard.endpoint, reason="bad", by=yard.approver)
    third = promotions.approve(yard.pending(), by=yard.approver).version
    assert yard.endpoint.previous == first
    record = releases.rollback(yard.endpoint, reason="bad too", by=yard.approver)
    assert (record.version, record.replaced) == (first, third)
    assert second != first


def test_rollback_needs_an_earlier_version(yard: Yard) -> None:
    for _ in range(2):
        with pytest.raises(Conflict):
            releases.rollback(yard.endpoint, reason="why not", by=yard.approver)
        if yard.endpoint.production is None:
            yard.live()


def test_a_reason_is_required(yard: Yard) -> None:
    yard.live()
    yard.live()
    with pytest.raises(BadInput):
        releases.rollback(yard.endpoint, reason="  ", by=yard.approver)


def test_a_member_cannot_roll_back(yard: Yard) -> None:
    yard.live()
    yard.live()
    with pytest.raises(Forbidden):
        releases.rollback(yard.endpoint, reason="bad", by=yard.member)


def test_the_next_target_is_kept_warm(yard: Yard) -> None:
    first, second, third = yard.live(), yard.live(), yard.live()
    body = SignedRelease.model_validate(ReleaseRecord.objects.latest("pk").body).release
    assert (body.production, body.standby) == (third.number, (second.number,))
    releases.rollback(yard.endpoint, reason="bad", by=yard.approver)
    body = SignedRelease.model_validate(ReleaseRecord.objects.latest("pk").body).release
    assert (body.production, body.standby) == (second.number, (first.number,))


def test_every_release_is_signed_with_the_key_of_the_home(yard: Yard) -> None:
    from workers.serving.releases.verification import ReleaseVerifier

    yard.live()
    signed = SignedRelease.model_validate(ReleaseRecord.objects.get().body)
    trust = ReleaseVerifier.from_text(signing.public_key_file().read_bytes())
    assert trust.verify(signed).production == 1
    assert signed.key == trust.key_id
    assert Path(settings.TRAINYARD_HOME, "release.key").stat().st_mode & 0o777 == 0o600
