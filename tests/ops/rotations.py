"""Gives this process a secret key in a file, which `rotate-keys` replaces."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from jobs.keys import key_ring, secret_keys
from jobs.keys.secret_keys import SecretKeys
from jobs.models import InstallationSettings

OLD, OTHER = "a" * 60, "b" * 60
KEYS = (
    "TRAINYARD_HOME",
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "TRAINYARD_SECRET_KEYS",
    "TRAINYARD_SECRET_KEY_FILE",
)


def key_file(tmp_path: Path) -> Iterator[Path]:
    """The file of the secret key, which this process has."""
    before = {name: getattr(settings, name) for name in KEYS}
    path = tmp_path / "secret.key"
    path.write_text(OLD)
    path.chmod(0o600)
    settings.TRAINYARD_HOME, settings.TRAINYARD_SECRET_KEY_FILE = tmp_path, path
    key_ring.use(SecretKeys(OLD))
    InstallationSettings.objects.update_or_create(pk=1, defaults={"key": key_ring.name_of_key()})
    yield path
    for name, value in before.items():
        setattr(settings, name, value)


def restart(file: Path) -> None:
    """Read the file as a part does at its start."""
    key_ring.use(secret_keys.parse(file.read_text()))


def rotate(*arguments: str) -> str:
    output = StringIO()
    call_command("rotate_keys", *arguments, stdout=output, stderr=output)
    return output.getvalue()
