"""The credentials of prediction servers: made once, rotated with an overlap, kept over restarts."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from jobs.actions.people import service_tokens, tokens
from jobs.errors import BadInput, Conflict, NotFound
from jobs.models import ApiToken, AuditEvent
from jobs.queries.audit.audit_verification import verify_chain
from tests.people import People
from webapp.__main__ import _with_module_name
from webapp.ops import preparation
from webapp.ops.home import Home

pytestmark = pytest.mark.django_db


def is_valid(secret: str) -> bool:
    return tokens.authenticate(secret) is not None


def test_a_credential_belongs_to_no_person_and_is_made_once() -> None:
    token = tokens.authenticate(service_tokens.create_credential("b", by=None))
    assert token is not None
    assert (token.name, token.scopes, token.expires) == ("b", ["serve"], None)
    assert token.user.is_service
    assert not token.user.has_usable_password()
    with pytest.raises(Conflict, match="'b': rotate it, or choose another name"):
        service_tokens.create_credential("b", by=None)


@pytest.mark.parametrize("name", ["", "B", "b/2", "b c", "x" * 61, "é", "-b"])
def test_a_name_that_could_be_another_servers_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a name: use up to 60"):
        service_tokens.create_credential(name, by=None)


def test_a_rotated_credential_ends_after_the_overlap() -> None:
    old = service_tokens.create_credential("b", by=None)
    new = service_tokens.rotate_credential("b", overlap=timedelta(hours=2), by=None)
    assert is_valid(old) and is_valid(new)
    assert ApiToken.objects.get(digest=tokens.digest_of(new)).expires is None
    first = ApiToken.objects.get(digest=tokens.digest_of(old)).expires
    assert first is not None and first - timezone.now() > timedelta(hours=1)
    service_tokens.rotate_credential("b", overlap=timedelta(), by=None)
    assert not is_valid(old) and not is_valid(new)
    assert verify_chain().holds


def test_a_later_rotation_gives_an_old_credential_no_more_time() -> None:
    old = service_tokens.create_credential("b", by=None)
    service_tokens.rotate_credential("b", overlap=timedelta(minutes=1), by=None)
    service_tokens.rotate_credential("b", overlap=timedelta(days=1), by=None)
    expires = ApiToken.objects.get(digest=tokens.digest_of(old)).expires
    assert expires is not None and expires - timezone.now() <= timedelta(minutes=1)


def test_a_revoked_credential_ends_at_once_and_its_name_is_free() -> None:
    secret = service_tokens.create_credential("b", by=None)
    service_tokens.revoke_credential("b", by=None)
    assert not is_valid(secret)
    assert AuditEvent.objects.filter(action="serving_token.revoke", target="server:b").exists()
    with pytest.raises(NotFound):
        service_tokens.rotate_credential("b", by=None)
    assert is_valid(service_tokens.create_credential("b", by=None))


@pytest.mark.parametrize("who", ["member", "administrator"])
def test_no_person_makes_a_token_of_a_prediction_server(people: People, who: str) -> None:
    person = getattr(people, who)
    with pytest.raises(BadInput, match=r"an administrator makes one with the command `serving-token NAME`"):
        tokens.create(person, by=person, scopes=["read", "serve"])
    with pytest.raises(CommandError, match="prediction servers alone"):
        call_command("token", person.username, "--scopes", "serve")


def test_the_command_prints_the_credential_alone(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("serving_token", "b")
    first = capsys.readouterr().out.strip()
    call_command("serving_token", "b", "--rotate", "--overlap", "1h")
    second = capsys.readouterr().out.strip()
    assert is_valid(first) and is_valid(second) and first != second
    with pytest.raises(CommandError, match=r"There is a credential .*--rotate replaces it"):
        call_command("serving_token", "b")
    with pytest.raises(CommandError, match="--overlap 'soon': give a number and m, h or d"):
        call_command("serving_token", "b", "--rotate", "--overlap", "soon")
    call_command("serving_token", "b", "--revoke")
    assert not is_valid(second)
    with pytest.raises(CommandError, match="There is no credential with the name 'b'"):
        call_command("serving_token", "b", "--rotate")


def test_a_command_is_called_with_hyphens() -> None:
    assert _with_module_name(["manage.py", "serving-token", "b-2"]) == ["manage.py", "serving_token", "b-2"]
    for arguments in (["manage.py"], ["manage.py", "--help"], ["manage.py", "up", "--serving-port", "0"]):
        assert _with_module_name(arguments) == arguments


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def secrets_of(home: Home) -> tuple[str, str]:
    return home.serving_token_file.read_text().strip(), home.prediction_token_file.read_text().strip()


def test_a_restart_keeps_the_credentials_of_the_home(home: Home) -> None:
    preparation.keep_tokens(home)
    before = secrets_of(home)
    preparation.keep_tokens(home)
    assert secrets_of(home) == before
    assert all(is_valid(secret) for secret in before)
    assert ApiToken.objects.count() == 2


def test_a_second_home_ends_no_credential_of_the_first(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.create()
    for one in (home, other, home, other):
        preparation.keep_tokens(one)
    assert all(is_valid(secret) for one in (home, other) for secret in secrets_of(one))
    names = ApiToken.objects.filter(scopes=["serve"]).order_by("pk").values_list("name", flat=True)
    assert len(set(names)) == 2


@pytest.mark.parametrize("content", [b"", b"ty_half", b"\xff\xfe", b"ty_unknown\n"])
def test_a_file_without_a_valid_credential_is_replaced(home: Home, content: bytes) -> None:
    home.serving_token_file.write_bytes(content)
    preparation.keep_tokens(home)
    assert is_valid(secrets_of(home)[0])
    assert home.serving_token_file.stat().st_mode & 0o777 == 0o600


def test_a_start_that_is_killed_before_its_file_is_written_makes_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        preparation.keep_tokens(home)
    assert not home.serving_token_file.exists()
    monkeypatch.undo()
    preparation.keep_tokens(home)
    assert is_valid(secrets_of(home)[0])
