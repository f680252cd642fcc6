"""`rotate-keys` replaces the secret key: sessions, secrets and the audit log stay valid."""

import datetime as dt
import stat
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from jobs import audit_chain
from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.actions.data import credentials
from jobs.actions.people import people as accounts
from jobs.keys import key_ring, sealing, secret_keys
from jobs.keys.secret_keys import BadKeyFile, FormerKey, SecretKeys
from jobs.models import AuditEvent, AuditHead, Credential, WaitingAuditEvent
from jobs.queries.audit import audit_verification
from jobs.queries.audit.audit_anchors import Anchor, current_anchor
from jobs.spec.data.credentials import CREDENTIAL
from tests.ops.rotations import OLD, OTHER, key_file, restart, rotate
from tests.people import People, browser_of
from webapp.ops.keys import secret_key

pytestmark = pytest.mark.django_db

file = pytest.fixture(key_file)


def record(people: People) -> AuditEvent:
    with transaction.atomic():
        return audit.record("test.row", people.project, by=people.owner)


def state_of_log(*anchors: Anchor) -> str:
    verification = audit_verification.verify_chain(anchors)
    return "valid" if verification.holds else verification.message


def test_the_log_stays_verifiable_without_the_former_key(people: People, file: Path) -> None:
    for _ in range(3):
        record(people)
    anchor = Anchor(**current_anchor().model_dump(), source="a backup")
    rotate("--overlap", "0m")
    rotate("--forget")
    restart(file)
    record(people)
    assert OLD not in file.read_text()
    assert state_of_log(anchor) == "valid"
    first = AuditEvent.objects.filter(action="test.row").order_by("pk").first()
    assert first is not None
    AuditEvent.objects.filter(pk=first.pk).update(target="changed")
    assert "was changed" in state_of_log()


def test_a_log_that_is_not_valid_is_not_rotated(people: People, file: Path) -> None:
    record(people)
    AuditEvent.objects.filter(action="test.row").update(target="changed")
    with pytest.raises(CommandError, match="audit seal"):
        rotate()
    assert settings.SECRET_KEY == OLD
    assert secret_keys.parse(file.read_text()).present == OLD


def test_a_process_that_still_has_the_former_key_signs_with_the_new_one(people: People, file: Path) -> None:
    rotate()
    key_ring.use(SecretKeys(OLD))
    record(people)
    assert settings.SECRET_KEY == secret_keys.parse(file.read_text()).present != OLD
    assert state_of_log() == "valid"


def test_a_process_on_a_machine_without_the_new_key_leaves_its_rows(
    people: People, file: Path, tmp_path: Path
) -> None:
    rotate()
    new = secret_keys.parse(file.read_text())
    elsewhere = tmp_path / "elsewhere.key"
    elsewhere.write_text(OLD)
    settings.TRAINYARD_SECRET_KEY_FILE = elsewhere
    key_ring.use(SecretKeys(OLD))
    record(people)
    assert WaitingAuditEvent.objects.count() == 1
    assert audit.append_waiting() == 0
    key_ring.use(new)
    assert audit.append_waiting() == 1
    assert state_of_log() == "valid"


def test_a_prepared_machine_learns_from_the_database_which_key_signs(file: Path, tmp_path: Path) -> None:
    rotate("--prepare")
    copy = tmp_path / "copy.key"
    copy.write_text(file.read_text())
    prepared = secret_keys.parse(copy.read_text())
    assert prepared.present == OLD
    rotate()
    settings.TRAINYARD_SECRET_KEY_FILE = copy
    key_ring.use(prepared)
    own_installation.follow_key()
    assert prepared.next == settings.SECRET_KEY
    assert OLD in settings.SECRET_KEY_FALLBACKS


def test_a_part_with_a_former_key_alone_is_refused_at_its_start(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotate()
    elsewhere = tmp_path / "elsewhere.key"
    elsewhere.write_text(OLD)
    settings.TRAINYARD_SECRET_KEY_FILE = elsewhere
    key_ring.use(SecretKeys(OLD))
    monkeypatch.setattr(own_installation, "_has_its_database", lambda: False)
    monkeypatch.setattr(own_installation, "CHECKS", (own_installation._check_key,))
    assert "copy the file" in (own_installation.problem(signs=True) or "")


class TestEncryptedValues:
    @pytest.fixture
    def credential(self, people: People, file: Path) -> Credential:
        entered = CREDENTIAL.validate_python({"kind": "s3", "key_id": "AKIA", "secret": "hidden"})
        return credentials.save(people.project, "store", entered, by=people.owner)

    def test_are_encrypted_anew(self, credential: Credential, people: People, file: Path) -> None:
        factor = TOTP.activate(people.owner, "JBSWY3DPEHPK3PXP").instance
        before = credential.sealed
        rotate("--overlap", "0m")
        rotate("--forget")
        restart(file)
        credential.refresh_from_db()
        assert credential.sealed != before
        assert "hidden" in credentials.secret_of(credential).to_json()
        factor = Authenticator.objects.get(pk=factor.pk)
        assert sealing.unseal(factor.data["secret"].removeprefix("sealed:"), "second-factor") == (
            "JBSWY3DPEHPK3PXP"
        )

    def test_of_a_process_with_the_former_key_are_encrypted_anew_before_it_is_forgotten(
        self, credential: Credential, file: Path
    ) -> None:
        rotate()
        key_ring.use(SecretKeys(OLD))
        late = sealing.seal(
            credentials.secret_of(credential).to_json(), credentials._purpose(credential.project_id, "store")
        )
        Credential.objects.filter(pk=credential.pk).update(sealed=late)
        restart(file)
        rotate("--forget")
        restart(file)
        credential.refresh_from_db()
        assert "hidden" in credentials.secret_of(credential).to_json()

    def test_are_read_by_a_process_that_has_not_learned_the_key(
        self, credential: Credential, file: Path
    ) -> None:
        rotate()
        key_ring.use(SecretKeys(OLD))
        credential.refresh_from_db()
        assert "hidden" in credentials.secret_of(credential).to_json()

    def test_of_a_lost_key_are_named_and_kept(self, credential: Credential, file: Path) -> None:
        Credential.objects.update(sealed="of another key")
        assert "1 credentials of projects cannot be decrypted" in rotate()
        assert Credential.objects.get().sealed == "of another key"


class TestKills:
    """The state if the command is killed between its steps; a transaction is done or not."""

    def test_after_the_next_key_was_added(self, people: People, file: Path) -> None:
        secret_key.prepare()
        restart(file)
        record(people)
        assert state_of_log() == "valid"
        rotate()
        restart(file)
        assert state_of_log() == "valid"

    def test_before_the_file_names_the_key_that_the_database_names(
        self, people: People, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record(people)
        browser = browser_of(people.member)
        keys = secret_key._with_next(secret_keys.parse(file.read_text()))
        secret_key._change_database(keys, timezone.now() + dt.timedelta(hours=1))
        # Every part starts, and signs with the right one.
        restart(file)
        assert secret_keys.parse(file.read_text()).present == OLD
        monkeypatch.setattr(own_installation, "CHECKS", (own_installation._check_key,))
        assert own_installation.problem(signs=True) is None
        assert keys.next == settings.SECRET_KEY
        assert browser.get("/account/session").json()["user"] == "member"
        record(people)
        assert state_of_log() == "valid"
        assert keys.next
        rotate()
        assert secret_keys.parse(file.read_text()).present == keys.next
        assert AuditEvent.objects.filter(action=audit_verification.SEAL).count() == 1
        assert state_of_log() == "valid"

    def test_a_copy_from_between_the_steps_has_a_valid_log(self, people: People, file: Path) -> None:
        record(people)
        keys = secret_key._with_next(secret_keys.parse(file.read_text()))
        until = timezone.now() + dt.timedelta(hours=1)
        # The file has its last state, and the database its first one; then the other way round.
        secret_keys.write(file, keys.promoted(until))
        restart(file)
        call_command("audit", "verify")
        secret_keys.write(file, keys)
        secret_key._change_database(keys, until)
        restart(file)
        call_command("audit", "verify")

    def test_a_refused_transaction_changes_nothing(
        self, people: People, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record(people)

        def fail() -> int:
            raise RuntimeError("killed")

        monkeypatch.setitem(secret_key.ENCRYPTED, "second factors", fail)
        with pytest.raises(RuntimeError):
            rotate()
        monkeypatch.undo()
        assert settings.SECRET_KEY == OLD
        assert state_of_log() == "valid"
        assert AuditHead.objects.get().key == audit_chain.key_id()
        rotate()
        restart(file)
        assert state_of_log() == "valid"


def test_a_second_rotation_keeps_the_first_key_as_long_as_it_verifies(people: People, file: Path) -> None:
    browser = browser_of(people.member)
    rotate()
    rotate()
    assert len(secret_keys.parse(file.read_text()).former) == 2
    restart(file)
    assert browser.get("/account/session").json()["user"] == "member"
    assert state_of_log() == "valid"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(secret_keys, "write", refuse)
    with pytest.raises(CommandError, match=r"cannot be written \(Permission denied\). Copy it"):
        rotate()


def test_an_overlap_that_is_no_duration_is_refused(file: Path) -> None:
    with pytest.raises(CommandError, match="give a number and m, h or d"):
        rotate("--overlap", "soon")


def test_logins_and_links_work_afterwards(people: People, file: Path) -> None:
    link = accounts.create_login_link(people.member, by=None)
    rotate()
    restart(file)
    assert Client().get(link).status_code == 200


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("short", "too short"),
        (f"{OLD}\nnext short", "too short"),
        (f"{OLD}\nlater {OTHER}", "line 2 is neither"),
        (f"{OLD}\nnext {OTHER}\nnext {OTHER}", "line 3 is neither"),
        (f"{OLD}\nformer {OTHER} tomorrow", "line 2 has no time"),
        (f"{OLD}\nformer {OTHER} 2026-12-31T12:00:00", "line 2 has no time"),
        ("", "too short"),
    ],
)
def test_a_damaged_file_is_refused_without_a_key_in_the_message(text: str, fault: str) -> None:
    with pytest.raises(BadKeyFile, match=fault) as error:
        secret_keys.parse(text)
    assert OLD not in str(error.value)
    assert OTHER not in str(error.value)


def test_a_file_is_read_as_it_was_written() -> None:
    keys = SecretKeys(OLD, OTHER, (FormerKey("c" * 60, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),))
    assert secret_keys.parse(keys.text()) == keys
    assert secret_keys.parse(OLD) == SecretKeys(OLD)
