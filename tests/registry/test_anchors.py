"""Signed releases carry the audit chain's row with which they were published."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from jobs import audit_chain, signing
from jobs.actions.registry import releases
from jobs.messages.release import Release, SignedRelease
from jobs.models import AuditEvent, AuditHead, ReleaseRecord
from jobs.queries.audit.audit_verification import ChainState, verify_chain
from tests.registry.conftest import Yard
from workers.serving.releases.verification import ReleaseRefused, ReleaseVerifier


@pytest.fixture
def published(yard: Yard) -> ReleaseRecord:
    yard.live()
    return ReleaseRecord.objects.get()


def verifier() -> ReleaseVerifier:
    return ReleaseVerifier.from_text(signing.public_key_file().read_bytes())


def earlier_release(generation: int = 1) -> dict[str, Any]:
    """Return a release as it was signed before it had an anchor."""
    release = {
        "model": "digits",
        "generation": generation,
        "production": None,
        "standby": [],
        "labels": {},
        "versions": [],
        "issued_at": "2026-01-01T00:00:00+00:00",
    }
    text = json.dumps(release, sort_keys=True, separators=(",", ":")).encode()
    signing.public_key_file()
    key: Any = load_pem_private_key(signing.private_key_file().read_bytes(), password=None)
    return {
        "release": release,
        "signature": base64.b64encode(key.sign(text)).decode(),
        "key": signing.key_id(),
    }


def drop_the_last_row_knowing_the_key() -> None:
    last = AuditEvent.objects.order_by("-number")[0]
    last.delete()
    before = AuditEvent.objects.order_by("-number")[0]
    mac = audit_chain.head_mac(before.number, before.hash)
    AuditHead.objects.update(number=before.number, hash=before.hash, mac=mac)


def test_a_release_names_its_own_row_of_the_chain(published: ReleaseRecord) -> None:
    row = AuditEvent.objects.get(action="release.promote")
    assert published.body["release"]["audit"] == {"number": row.number, "hash": row.hash}
    assert verify_chain().holds


def test_the_signature_covers_the_anchor(published: ReleaseRecord) -> None:
    signed = SignedRelease.model_validate(published.body)
    assert verifier().verify(signed) == signed.release
    assert signed.release.audit is not None
    other = signed.release.audit.model_copy(update={"number": 1})
    for audit in (other, None):
        changed = signed.release.model_copy(update={"audit": audit})
        with pytest.raises(ReleaseRefused):
            verifier().verify(signed.model_copy(update={"release": changed}))


def test_an_earlier_release_without_an_anchor_still_verifies(published: ReleaseRecord) -> None:
    signed = SignedRelease.model_validate(earlier_release())
    assert verifier().verify(signed) == Release.model_validate(earlier_release()["release"])
    assert signed.model_dump(mode="json") == earlier_release(), "earlier prediction servers read it too"
    ReleaseRecord.objects.update(body=earlier_release())
    assert verify_chain().holds


def test_a_release_shows_rows_that_were_dropped_with_the_key(published: ReleaseRecord) -> None:
    number = AuditEvent.objects.get(action="release.promote").number
    while AuditEvent.objects.filter(action="release.promote").exists():
        drop_the_last_row_knowing_the_key()
    verified = verify_chain()
    assert verified.state == ChainState.TRUNCATED
    assert verified.missing is not None
    assert verified.missing[1] == number
    assert "release 1 of digits names the row" in verified.message


@pytest.mark.parametrize("change", ["anchor", "without", "generation", "unreadable"])
def test_a_changed_release_is_found(published: ReleaseRecord, change: str) -> None:
    body = published.body
    if change == "anchor":
        body["release"]["audit"]["number"] = 1
    elif change == "without":
        del body["release"]["audit"]
    elif change == "generation":
        body = earlier_release(generation=7)
    else:
        body = {}
    ReleaseRecord.objects.update(body=body)
    verified = verify_chain()
    assert verified.state == ChainState.RELEASE_CHANGED
    assert "release 1 of digits" in verified.message


def test_a_release_of_an_earlier_signing_key_is_compared_too(published: ReleaseRecord) -> None:
    signing.private_key_file().unlink()
    signing.private_key_file().with_suffix(".pub").unlink()
    assert verify_chain().holds
    while AuditEvent.objects.filter(action="release.promote").exists():
        drop_the_last_row_knowing_the_key()
    assert verify_chain().state == ChainState.TRUNCATED


def test_a_changed_row_is_named_before_a_changed_release(published: ReleaseRecord) -> None:
    ReleaseRecord.objects.update(body={})
    AuditEvent.objects.filter(number=1).update(target="model:other")
    assert verify_chain().state == ChainState.CHANGED


def test_each_release_has_the_anchor_of_its_time(yard: Yard) -> None:
    yard.live()
    yard.live()
    releases.rollback(yard.endpoint, reason="bad", by=yard.approver)
    anchors = [record.body["release"]["audit"]["number"] for record in ReleaseRecord.objects.order_by("pk")]
    assert anchors == sorted(set(anchors))
    assert verify_chain().holds
