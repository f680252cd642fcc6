"""Home, keys, broker and stores: where an installation has its files, which only its owner can access."""

import errno
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from jobs import private_files, program
from jobs.atomic_files import create_once
from jobs.keys.secret_keys import BadKeyFile, SecretKeys, parse
from jobs.logs.masking import mask
from webapp.ops.home import Home
from webapp.settings.env import parts_of, require_private, words

KEY_VARIABLE = "TRAINYARD_SECRET_KEY_FILE"


def home() -> Path:
    """Return `TRAINYARD_HOME`, the folder with all state, which only its owner can access.

    It is created if absent, by commands that may. From here on, this process and its children create private
    files only.
    """
    private_files.restrict_new_files()
    root = Home.from_environment().root
    if not makes_files() and not root.exists():
        return root
    return require_private(private_files.make_home_private, root, "TRAINYARD_HOME")


def makes_files() -> bool:
    """Return whether the settings may make folders and a key, rather than leave a mistyped home alone."""
    return not os.environ.get(program.WITHOUT_FILES_VARIABLE)


def secret_key_file(home_folder: Path) -> Path:
    """Return the secret key's file."""
    return Path(os.environ.get(KEY_VARIABLE) or home_folder / "secret.key")


def secret_keys(home_folder: Path) -> SecretKeys:
    """Return the secret key, with those of a rotation; it is created once with mode 0600.

    A worker creates none: it signs nothing. Without a file it has no key, and Django refuses to sign.
    """
    path = require_private(private_files.make_file_private, secret_key_file(home_folder), KEY_VARIABLE)
    try:
        if not path.exists():
            if os.environ.get(program.KEYLESS_VARIABLE):
                return SecretKeys("")
            if not makes_files():
                if os.environ.get(KEY_VARIABLE) and not path.parent.is_dir():
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                # Of this process alone: the command refuses, or signs nothing that lasts.
                return SecretKeys(secrets.token_urlsafe(64))
            create_once(path, secrets.token_urlsafe(64).encode())
        return parse(path.read_text())
    except BadKeyFile as error:
        raise ImproperlyConfigured(
            f"{path}: {error}; put it back from a backup, or delete the file to create a new key"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ImproperlyConfigured(f"{KEY_VARIABLE}: {path} cannot be used: {reason}") from error


def redis_url(home_folder: Path) -> str:
    """Return the broker's URL; by default the socket that `up`'s broker opens."""
    if url := os.environ.get("TRAINYARD_REDIS_URL"):
        parts = parts_of("TRAINYARD_REDIS_URL", url)
        if parts.scheme not in ("redis", "rediss", "unix") or not (parts.hostname or parts.path):
            raise ImproperlyConfigured(
                f"TRAINYARD_REDIS_URL={mask(url)!r}: give redis://host:6379/0, rediss://… or unix:///path?db=0"
            )
        return url
    # It may be in a folder for all users: no other user may have put a socket there.
    require_private(
        private_files.require_private_folder, Home(home_folder).broker_socket.parent, "TRAINYARD_HOME"
    )
    return Home(home_folder).broker_url


def artifacts(home_folder: Path) -> str:
    """Return the artifact store's folder, which only its owner can access, or its fsspec URL."""
    location = os.environ.get("TRAINYARD_ARTIFACTS") or str(home_folder / "artifacts")
    if "://" in location:
        _require_protocol(location.partition("://")[0])
        return location
    folder = Path(location)
    try:
        # The store makes its folder in the home by itself, when it is needed.
        if os.environ.get("TRAINYARD_ARTIFACTS") and (makes_files() or home_folder.exists()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"TRAINYARD_ARTIFACTS: the folder {folder} cannot be made: {error.strerror or error}"
        ) from error
    require_private(private_files.make_folder_private, folder, "TRAINYARD_ARTIFACTS")
    return location


def _require_protocol(protocol: str) -> None:
    """Require that fsspec knows the protocol of an artifact store."""
    from fsspec.registry import known_implementations  # slow, and not needed for folders

    if protocol not in known_implementations:
        raise ImproperlyConfigured(
            f"TRAINYARD_ARTIFACTS: {protocol!r} is no protocol of a store, such as s3 or gs"
        )


def data_roots(private: Sequence[Path]) -> tuple[str, ...]:
    """Return the folders in `TRAINYARD_DATA_ROOTS`, below which files may be read as data.

    Args:
        private: the installation's files and folders. Everyone who may write in a project can read the
            folders' files, so they must not overlap.
    """
    name = "TRAINYARD_DATA_ROOTS"
    for text in words(name):
        path = Path(text)
        if not path.is_absolute() or ".." in path.parts:
            raise ImproperlyConfigured(f"{name}: {text!r} is no absolute path of a folder")
        root = path.resolve()
        for reserved in private:
            if root.is_relative_to(reserved.resolve()) or reserved.resolve().is_relative_to(root):
                raise ImproperlyConfigured(
                    f"{name}: {text!r} overlaps with {reserved}, which belongs to the installation; "
                    "give folders that have data alone"
                )
    return tuple(str(Path(path)) for path in words(name))
