from pathlib import Path

import pytest

from jobs.models import (
    Artifact,
    CodeFile,
    CodeVersion,
)
from jobs.store import store
from tests.jobs.yard import Yard

DIGEST = "c" * 64


@pytest.fixture
def code(installation: Yard, tmp_path: Path) -> CodeVersion:
    version = CodeVersion.objects.create(
        project=installation.project, name="model", digest=DIGEST, bytes=1, created_by=installation.owner,
        found_json={"packages": {"path": "requirements.txt", "requirements": ["torch>=2"]}},
    )  # fmt: skip
    (tmp_path / "model.py").write_text("def build_model(hp): ...")
    stored = store().put(tmp_path / "model.py")
    artifact = Artifact.objects.create(digest=stored.digest, bytes=stored.bytes)
    CodeFile.objects.create(version=version, path="package/model.py", artifact=artifact, lines=1)
    return version
