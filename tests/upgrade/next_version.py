"""Makes the program of the next version: this one, with another number and one more migration."""

import shutil
from pathlib import Path

from jobs import program
from tests.ops.conftest import ROOT

NUMBER = "99.0.0"
MIGRATION = "0999_next_version"
FOLDERS = ("jobs", "transport", "webapp", "workers", "templates", "docs")
_MIGRATION = """
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "{newest}")]

    operations = [migrations.RunSQL("CREATE TABLE jobs_novelty (id integer)", "DROP TABLE jobs_novelty")]
"""


def make_next_version(folder: Path, *, newest: str) -> Path:
    """Make the program in a folder, and return it.

    Args:
        folder: a new folder.
        newest: this program's last migration.
    """
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    project = folder / "pyproject.toml"
    own = f'version = "{program.program_version()}"'
    text = project.read_text()
    assert own in text
    project.write_text(text.replace(own, f'version = "{NUMBER}"', 1))
    (folder / "jobs" / "migrations" / f"{MIGRATION}.py").write_text(_MIGRATION.format(newest=newest))
    return folder
