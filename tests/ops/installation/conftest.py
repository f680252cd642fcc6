"""A home that the user of the image owns, as in the volume of Compose."""

import shutil
from pathlib import Path

import pytest

from tests.ops.installation.compose import UID, can_confine
from webapp.ops.home import Home


@pytest.fixture
def home_of_image(tmp_path: Path, migrated: Path | None) -> Path:
    """The home; the folder above has the backups too."""
    volumes = tmp_path / "volumes"
    volumes.mkdir()
    volumes.chmod(0o755)
    home = Home(volumes / "home")
    home.create()
    if migrated is not None:
        shutil.copy(migrated, home.root / "trainyard.sqlite3")
    (volumes / "backups").mkdir(mode=0o700)
    if can_confine():
        for path in (*home.root.rglob("*"), home.root, volumes / "backups"):
            shutil.chown(path, UID, UID)
    return home.root
