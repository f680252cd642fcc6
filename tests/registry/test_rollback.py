from pathlib import Path

import pytest
from django.conf import settings

from jobs import signing
from jobs.actions.registry import promotions, releases
from jobs.errors import BadInput, Conflict, Forbidden
from jobs.messages.release import SignedRelease
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


def test_an_endpoint_that_is_taken_down_serves_nothing_and_comes_up_as_it_was(yard: Yard) -> None:
    first, second = yard.live(), yard.live()
    record = releases.take_down(yard.endpoint, reason="it leaks data", by=yard.approver)
    down = SignedRelease.model_validate(record.body)
    assert (down.release.production, down.release.versions, down.release.labels) == (None, (), {})
    assert (record.generation, record.replaced, yard.endpoint.is_down) == (3, second, True)
    assert AuditEvent.objects.get(action="release.take_down").detail["reason"] == "it leaks data"
    up = SignedRelease.model_validate(releases.bring_up(yard.endpoint, by=yard.approver).body)
    assert (up.release.production, up.release.standby) == (second.number, (first.number,))
    assert (yard.endpoint.production, yard.endpoint.is_down) == (second, False)
    assert releases.rollback(yard.endpoint, reason="bad", by=yard.approver).version == first


def test_only_an_approver_takes_an_endpoint_down_with_a_reason_and_once(yard: Yard) -> None:
    with pytest.raises(Conflict, match="serves no version"):
        releases.take_down(yard.endpoint, reason="x", by=yard.approver)
    yard.live()
    with pytest.raises(Forbidden):
        releases.take_down(yard.endpoint, reason="x", by=yard.member)
    with pytest.raises(BadInput):
        releases.take_down(yard.endpoint, reason=" ", by=yard.approver)
    with pytest.raises(Conflict, match="is not down"):
        releases.bring_up(yard.endpoint, by=yard.approver)
    releases.take_down(yard.endpoint, reason="x", by=yard.approver)
    with pytest.raises(Conflict, match="bring it up first"):
        releases.take_down(yard.endpoint, reason="x", by=yard.approver)
    with pytest.raises(Forbidden):
        releases.bring_up(yard.endpoint, by=yard.member)


def test_an_approval_or_a_rollback_brings_an_endpoint_up(yard: Yard) -> None:
    yard.live()
    second = yard.live()
    releases.take_down(yard.endpoint, reason="x", by=yard.approver)
    third = promotions.approve(yard.pending(), by=yard.approver).version
    assert (yard.endpoint.production, yard.endpoint.is_down) == (third, False)
    releases.take_down(yard.endpoint, reason="x", by=yard.approver)
    releases.rollback(yard.endpoint, reason="worse", by=yard.approver)
    assert (yard.endpoint.production, yard.endpoint.is_down) == (second, False)


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
