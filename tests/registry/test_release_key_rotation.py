"""The key that signs releases is replaced, and prediction servers accept both for a while."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from jobs import signing
from jobs.actions.registry import release_keys
from jobs.messages.release import SignedRelease
from jobs.models import ReleaseRecord
from jobs.queries.audit.audit_verification import ChainState, verify_chain
from tests.registry.conftest import Yard
from webapp.ops.keys import release_key
from workers.serving.releases.verification import ReleaseRefused, ReleaseVerifier


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: object) -> Path:
    """A home of its own, so that other tests keep their key."""
    settings.TRAINYARD_HOME = tmp_path  # type: ignore[attr-defined]
    return tmp_path


def rotate(*arguments: str) -> str:
    output = StringIO()
    call_command("rotate_keys", "--releases", *arguments, stdout=output, stderr=output)
    return output.getvalue()


def newest() -> SignedRelease:
    return SignedRelease.model_validate(ReleaseRecord.objects.order_by("pk").last().body)  # type: ignore[union-attr]


def server() -> ReleaseVerifier:
    """A prediction server that starts now."""
    return ReleaseVerifier.from_text(signing.public_key_file().read_bytes())


def test_stored_releases_are_signed_anew_and_servers_trust_both_keys(yard: Yard) -> None:
    yard.live()
    signed, former = newest(), signing.key_id()
    rotate()
    assert newest().release == signed.release
    assert newest().key == signing.key_id() != former
    for release in (signed, newest()):
        assert server().verify(release) == release.release
    assert verify_chain().holds


def test_a_former_key_is_trusted_no_more_once_it_is_forgotten(yard: Yard) -> None:
    yard.live()
    signed = newest()
    rotate()
    rotate("--forget")
    assert server().verify(newest()) == signed.release
    with pytest.raises(ReleaseRefused):
        server().verify(signed)
    assert verify_chain().holds
    with pytest.raises(CommandError, match="no former key"):
        rotate("--forget")


def test_a_running_server_learns_the_next_key_from_its_file(yard: Yard, tmp_path: Path) -> None:
    yard.live()
    file = tmp_path / "copy.pub"
    file.write_bytes(signing.public_key_file().read_bytes())
    running = ReleaseVerifier.from_file(file)
    rotate("--prepare")
    assert newest().key == signing.key_id(), "nothing is signed with it yet"
    file.write_bytes(signing.public_key_file().read_bytes())
    rotate()
    yard.live()
    assert running.verify(newest()) == newest().release


def test_a_server_that_has_not_got_the_file_refuses_a_new_key(yard: Yard) -> None:
    yard.live()
    stale = server()
    rotate()
    with pytest.raises(ReleaseRefused, match="is not valid"):
        stale.verify(newest())


def test_a_rotation_that_was_killed_between_its_steps_is_repeated(yard: Yard) -> None:
    yard.live()
    former = signing.key_id()
    following = signing.prepare_next()
    with transaction.atomic():
        release_keys.sign_anew()
    # Here: the releases have the next key's signature, and the present key signs.
    assert (newest().key, signing.key_id()) == (following, former)
    assert server().verify(newest())
    assert verify_chain().holds
    yard.live()
    assert newest().key == former
    rotate()
    assert newest().key == signing.key_id() == following
    assert verify_chain().holds


def test_a_kill_after_the_key_was_replaced_leaves_it_usable(yard: Yard, home: Path) -> None:
    yard.live()
    signing.prepare_next()
    pem = (home / "release.next.key").read_bytes()
    (home / "release.key").write_bytes(pem)
    assert server().verify(signing.sign(newest().release))
    rotate()
    assert server().verify(newest())
    assert not (home / "release.next.key").exists()


def test_a_release_that_was_changed_ends_the_rotation(yard: Yard) -> None:
    yard.live()
    record = ReleaseRecord.objects.get()
    record.body["release"]["issued_at"] = "2020-01-01T00:00:00+00:00"
    record.save()
    former = signing.key_id()
    with pytest.raises(CommandError, match="is not the one that was signed"):
        rotate()
    assert signing.key_id() == former
    assert verify_chain().state == ChainState.RELEASE_CHANGED


def test_releases_of_a_key_that_is_gone_stay_as_they_are(yard: Yard, home: Path) -> None:
    yard.live()
    (home / "release.key").unlink()
    (home / "release.pub").unlink()
    before = newest()
    assert "1 releases of a key that is gone" in rotate()
    assert newest() == before


def test_private_keys_are_readable_by_their_owner_only(yard: Yard, home: Path) -> None:
    release_key.prepare()
    rotate()
    for file in home.glob("release*"):
        assert not file.stat().st_mode & 0o077
