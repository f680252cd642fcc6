"""`make release`: a signed archive and bills of materials, the same for the same commit."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"
RELEASE_ONE_LOCK = """
import sys
import release
release.LOCKS = release.LOCKS[:1]
sys.exit(release.main())
"""
"""The tool that makes a bill of materials takes two seconds for each lock."""
LOCK = f"django==6.1.3 \\\n    --hash=sha256:{'0' * 64}\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the files that a release reads."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "trainyard"\nversion = "1.2.0"\n')
    (folder / "requirements.lock").write_text(LOCK)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    private = Ed25519PrivateKey.generate()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def release(tree: Path, key: Path | str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRAINYARD_SIGNING_KEY": str(key), "PYTHONPATH": str(SCRIPTS)}
    command = [sys.executable, "-c", RELEASE_ONE_LOCK]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def verifies(folder: Path) -> bool:
    """Run the commands on the page about security."""
    command = (
        "openssl pkeyutl -verify -pubin -inkey signing-key.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig"
        " && sha256sum --check --quiet SHA256SUMS"
    )
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False).returncode == 0


def test_a_release_has_a_bill_of_materials_for_each_way_to_install() -> None:
    (locks,) = re.findall(r"^LOCKS = \((.*)\)$", (SCRIPTS / "release.py").read_text(), re.MULTILINE)
    installed = {path.name for path in ROOT.glob("requirements*.lock")} - {"requirements-dev.lock"}
    assert {name.strip(' "') for name in locks.split(",")} == installed


def test_a_release_verifies_until_a_file_is_changed_and_is_reproducible(tree: Path, key: Path) -> None:
    done = release(tree, key)
    assert done.returncode == 0, done.stderr
    dist = tree / "dist"
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    bom = json.loads(first["trainyard-1.2.0-requirements.cdx.json"])
    assert bom["bomFormat"] == "CycloneDX"
    assert [component["purl"] for component in bom["components"]] == ["pkg:pypi/django@6.1.3"]
    assert verifies(dist)
    assert release(tree, key).returncode == 0
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == first
    with (dist / "trainyard-1.2.0.tar.gz").open("ab") as archive:
        archive.write(b"x")
    assert not verifies(dist)


def test_without_a_usable_key_nothing_is_made(tree: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no key")
    for key, reason in (("", "is not set"), (tmp_path / "absent.pem", "No such file"), (wrong, "wrong.pem")):
        done = release(tree, key)
        assert done.returncode == 2
        assert reason in done.stderr
        assert not list(tree.glob("dist*"))


def test_changes_that_are_not_committed_are_not_released(tree: Path, key: Path) -> None:
    (tree / "requirements.lock").write_text("")
    done = release(tree, key)
    assert done.returncode == 2
    assert "Commit them first" in done.stderr
