"""A rotation of the secret key that is killed at any step leaves keys that fit, and is repeated."""

import datetime as dt
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.db.backends.utils import CursorWrapper

from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.keys import key_ring, sealing, secret_keys
from jobs.keys.secret_keys import SecretKeys
from jobs.models import Credential, InstallationSettings, Project
from jobs.queries.audit import audit_verification
from tests.ops.killed_moves import watched
from tests.ops.moved import Installation
from webapp.ops.keys import secret_key
from webapp.ops.moves.places import as_default, opened

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(sys.platform != "linux", reason="forks"),
]

OLD = "a" * 60
KEYS = ("SECRET_KEY", "SECRET_KEY_FALLBACKS", "TRAINYARD_SECRET_KEYS", "TRAINYARD_SECRET_KEY_FILE")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    before = {name: getattr(settings, name) for name in KEYS}
    path = settings.TRAINYARD_SECRET_KEY_FILE = tmp_path / "secret.key"
    yield path
    for name, value in before.items():
        setattr(settings, name, value)


def prepare(root: Path, tables: Path, file: Path) -> Installation:
    """Make an installation with a sealed value, whose key is the old one."""
    secret_keys.write(file, SecretKeys(OLD))
    key_ring.use(SecretKeys(OLD))
    installation = Installation(root, tables)
    with opened(installation.database) as wrapper, as_default(wrapper):
        InstallationSettings.objects.update(key=key_ring.name_of_key())
        project = Project.objects.get(slug="yard")
        sealed = sealing.seal("hidden", f"credential {project.pk} store")
        Credential.objects.create(
            project=project,
            name="store",
            kind="s3",
            sealed=sealed,
            created_by=project.created_by,
            created=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        )
    return installation


def require_working(installation: Installation, file: Path) -> str:
    """Start as a part does, write to the log and read the sealed value. Return the key that signs."""
    key_ring.use(secret_keys.parse(file.read_text()))
    with opened(installation.database) as wrapper, as_default(wrapper):
        own_installation.follow_key()
        with transaction.atomic():
            audit.record("test.row", "x", by=None)
        verification = audit_verification.verify_chain()
        assert verification.holds, verification.message
        assert verification.notes == () or "waiting" not in str(verification.notes)
        row = Credential.objects.get()
        assert sealing.unseal(row.sealed, f"credential {row.project_id} store") == "hidden"
    return str(settings.SECRET_KEY)


def rotate(installation: Installation) -> None:
    with opened(installation.database) as wrapper, as_default(wrapper):
        own_installation.follow_key()
        secret_key.rotate(dt.timedelta(hours=1))


def killed_at(step: int, action: Callable[[], Any]) -> bool:
    pid = os.fork()
    if pid == 0:
        passed = 0

        def count() -> None:
            nonlocal passed
            passed += 1
            if passed > step:
                os.kill(os.getpid(), signal.SIGKILL)

        for owner, name in (
            (CursorWrapper, "execute"),
            (os, "open"),
            (os, "fsync"),
            (Path, "replace"),
            (Path, "unlink"),
        ):
            setattr(owner, name, watched(getattr(owner, name), count))
        try:
            action()
        except BaseException:  # noqa: BLE001  the parent sees the status
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_killed_at_any_step_the_parts_work_with_one_key_and_the_rotation_is_repeated(
    tmp_path: Path, migrated: Path | None, file: Path
) -> None:
    if migrated is None:
        pytest.skip("the tests use no SQLite")
    signing = set()
    for step in range(400):
        installation = prepare(tmp_path / f"{step}", migrated, file)
        if not killed_at(step, lambda installation=installation: rotate(installation)):  # type: ignore[misc]
            break
        signing.add(require_working(installation, file) == OLD)
        rotate(installation)
        assert require_working(installation, file) != OLD
        assert not [path for path in file.parent.iterdir() if path.name.endswith(f".{os.getpid()}")]
    assert signing == {True, False}
    assert step > 40
