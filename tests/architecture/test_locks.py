"""The lock files and minimum versions: the locked files are installed, byte for byte."""

import json
import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
GPU_LOCKS = {13: "requirements-gpu.lock", 12: "requirements-gpu12.lock"}
LOCKS = ("requirements.lock", "requirements-dev.lock", *GPU_LOCKS.values())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def entries(name: str) -> dict[str, str]:
    """Return each locked package with the text of its entry."""
    blocks = re.split(r"\n(?=\S)", (ROOT / name).read_text().strip())
    return {canonicalize_name(Requirement(block.split("\\")[0]).name): block for block in blocks}


def direct() -> list[Requirement]:
    """Return every dependency that pyproject.toml names."""
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    return [Requirement(text) for group in lists for text in group]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_one_version_and_hashes(lock: str) -> None:
    for name, block in entries(lock).items():
        assert re.match(r"[\w.-]+==\S+", block), name
        assert "--hash=sha256:" in block, name


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_name_no_download_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-i|--index|--extra-index|--find-links|--trusted-host)", text, re.MULTILINE)


@pytest.mark.parametrize("requirement", direct(), ids=lambda requirement: requirement.name)
def test_every_direct_dependency_has_a_floor(requirement: Requirement) -> None:
    assert any(part.operator in (">=", "==", "~=") for part in requirement.specifier), str(requirement)


def test_the_lock_file_satisfies_the_requirements_of_the_project() -> None:
    locked, requirements = entries("requirements.lock"), PROJECT["project"]["dependencies"]
    for requirement in map(Requirement, requirements):
        block = locked[canonicalize_name(requirement.name)]
        version = re.match(r"\S+?==([^\s;\\]+)", block)
        assert version, block
        assert requirement.specifier.contains(version[1], prereleases=True), block.splitlines()[0]


@pytest.mark.parametrize("lock", LOCKS)
def test_the_requirements_of_locked_packages_are_locked_too(lock: str) -> None:
    locked = entries(lock)
    for package in distributions():
        if (name := canonicalize_name(package.metadata["Name"])) not in locked:
            continue
        for requirement in map(Requirement, package.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed = canonicalize_name(requirement.name)
                assert needed in locked, f"{name} needs {needed}: nothing installs from {lock}"


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_the_other_locks_hold_the_main_one_unchanged(lock: str) -> None:
    # A package may be needed on more platforms there: versions and digests are compared, markers are not.
    def files(name: str) -> dict[str, str]:
        return {package: re.sub(r" ;[^\\]*", " ", block) for package, block in entries(name).items()}

    main = files("requirements.lock")
    assert {name: block for name, block in files(lock).items() if name in main} == main


@pytest.mark.parametrize(("release", "lock"), GPU_LOCKS.items())
def test_a_gpu_lock_has_the_cuda_plugin_of_its_jaxlib(release: int, lock: str) -> None:
    # JAX ignores a plugin of another version, and would use the CPU.
    locked = {name: block.split("\\")[0].split("==")[1].strip() for name, block in entries(lock).items()}
    assert locked[f"jax-cuda{release}-plugin"] == locked[f"jax-cuda{release}-pjrt"] == locked["jaxlib"]
    assert [name for name in locked if name.startswith("jax-cuda")] == [
        f"jax-cuda{release}-pjrt",
        f"jax-cuda{release}-plugin",
    ]


def test_every_locked_npm_package_has_one_version_and_a_hash() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for name, entry in packages.items():
        assert name == "" or {"version", "integrity"} <= entry.keys(), name


def test_the_npm_lock_names_no_address() -> None:
    text = (ROOT / "package-lock.json").read_text()
    assert "resolved" not in text
    assert "://" not in text, "npm run lock writes the file without addresses"


def test_npm_packages_are_pinned_and_for_development_only() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    assert "dependencies" not in package
    for name, version in package["devDependencies"].items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
