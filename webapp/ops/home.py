"""Defines the files and folders in an installation's home directory."""

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jobs.private_files import NotPrivate, create_private_folder
from webapp.ops.errors import OpsError

# sun_path has 108 bytes including the terminating zero; bind() fails for a longer path.
SOCKET_PATH_LIMIT = 107


@dataclass(frozen=True)
class Home:
    """The folders and files below `TRAINYARD_HOME`."""

    root: Path

    @classmethod
    def from_environment(cls) -> "Home":
        """Return the home that is set in the environment; default: `./.trainyard`."""
        return cls(Path(os.environ.get("TRAINYARD_HOME") or ".trainyard").resolve())

    @property
    def run(self) -> Path:
        """Files that are valid only while `up` runs, and secrets created for its parts."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """A rotated log file for each part."""
        return self.root / "log"

    @property
    def backups(self) -> Path:
        """Database copies from before migrations."""
        return self.root / "backups"

    @property
    def broker_data(self) -> Path:
        """The append-only file that `up`'s broker writes."""
        return self.root / "broker"

    @property
    def lock_file(self) -> Path:
        """Contains the pid and is locked while `up` runs."""
        return self.run / "up.lock"

    @property
    def urls_file(self) -> Path:
        """The URLs, written once everything is ready."""
        return self.run / "urls.json"

    @property
    def serving_token_file(self) -> Path:
        """The prediction server's token for the dashboard."""
        return self.run / "serving.token"

    @property
    def prediction_token_file(self) -> Path:
        """The dashboard's token for the prediction server."""
        return self.run / "prediction.token"

    @property
    def release_key_file(self) -> Path:
        """The public key for release signatures."""
        return self.root / "release.pub"

    @property
    def broker_socket(self) -> Path:
        """The broker's unix socket: below the home, or in the temporary folder if that path is too long."""
        inside = self.run / "valkey.sock"
        if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"trainyard-{os.getuid()}-{digest}" / "valkey.sock"

    @property
    def broker_url(self) -> str:
        """The broker URL that `up` uses for this home."""
        return f"unix://{self.broker_socket}?db=0"

    def health_socket(self, part: str) -> Path:
        """Return the unix socket on which a part answers the supervisor's health checks."""
        return self.broker_socket.parent / f"{part}.sock"

    def create(self) -> None:
        """Create the folders, accessible only to their owner.

        Raises:
            OpsError: another user has created the broker's socket folder, or has access to it.
        """
        for folder in (self.root, self.run, self.log, self.broker_data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            create_private_folder(self.broker_socket.parent)
        except NotPrivate as error:
            raise OpsError(str(error)) from error

    def write_urls(self, urls: dict[str, str | int]) -> None:
        """Write the URLs atomically."""
        write_private(self.urls_file, json.dumps(urls) + "\n")

    def remove_urls(self) -> None:
        self.urls_file.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; it is readable only by its owner."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
