"""Digests over installed packages' files, without an installation."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.environments import InstalledPackage
from workers.confinement.environments import contents
from workers.confinement.environments.contents import differences, installed
from workers.confinement.environments.failures import BuildFailed

FILES = {"first/__init__.py": "VERSION = 1\n", "first-1.0.dist-info/METADATA": "Name: first\n"}


def venv(place: Path, files: Mapping[str, str]) -> Path:
    """Make an environment's folder with one package."""
    site = place / "lib" / "python3.13" / "site-packages"
    names = [*files, "first-1.0.dist-info/RECORD"]
    record = "".join(f"{name},,\n" for name in names)
    for name, text in {**files, "first-1.0.dist-info/RECORD": record}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return place


def digest(place: Path, files: Mapping[str, str], *, built: bool = False) -> str:
    (package,) = installed(venv(place, files), {"first"} if built else ())
    assert (package.name, package.version) == ("first", "1.0")
    return package.digest


def test_a_digest_covers_the_files_of_a_wheel_and_nothing_that_installers_add(tmp_path: Path) -> None:
    plain = digest(tmp_path / "plain", FILES)
    added = {
        "first/__pycache__/x.pyc": "compiled", "first-1.0.dist-info/INSTALLER": "uv",
        "../../../bin/first": f"#!{tmp_path}\n",
    }  # fmt: skip
    assert len(plain) == 64
    assert digest(tmp_path / "other", {**FILES, **added}) == plain
    assert digest(tmp_path / "changed", {**FILES, "first/__init__.py": "VERSION = 2\n"}) != plain
    assert digest(tmp_path / "more", {**FILES, "first/more.py": ""}) != plain
    assert digest(tmp_path / "built", FILES, built=True) == ""


@pytest.mark.parametrize(
    ("place", "is_listed"),
    [
        ("first/hidden.py", False),
        ("hidden.pth", False),
        ("hidden\udcff.py", False),
        ("other-1.0.dist-info/hidden.py", False),
        ("first/more.pyc", True),
        ("../../../bin/python3.13", True),
    ],
)
def test_no_file_that_a_run_could_execute_is_left_out(tmp_path: Path, place: str, is_listed: bool) -> None:
    """A package writes the list of its files itself, so files beside it count, too."""
    listed = {place: "1"} if is_listed else {}
    digests = []
    for content in ("1", "2"):
        changed = venv(tmp_path / content, {**FILES, **listed})
        file = changed / "lib/python3.13/site-packages" / place
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
        (package, *_) = installed(changed, ())
        digests.append(package.digest)
    assert digests[0] != digests[1]


def test_no_file_outside_of_the_environment_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    place = venv(tmp_path / "venv", FILES)
    site = place / "lib/python3.13/site-packages"
    (site / "link").symlink_to(secret)
    with (site / "first-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"link,,\n../../../../secret,,\n{secret},,\n")
    read: list[str] = []
    original = hashlib.file_digest

    def digest(file: Any, kind: str) -> Any:
        read.append(file.name)
        return original(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    installed(place, ())
    assert read
    assert all(Path(name).is_relative_to(place.resolve()) for name in read)


def test_what_differs_from_a_recorded_set_is_named() -> None:
    def package(name: str, version: str = "1", digest: str = "a") -> InstalledPackage:
        return InstalledPackage(name=name, version=version, digest=digest)

    recorded = [package("a"), package("b"), package("c"), package("d"), package("e", digest=""), package("f")]
    present = [
        package("a"),
        package("b", "2"),
        package("c", digest="b"),
        package("e", digest="b"),
        package("g"),
    ]
    assert differences(recorded, present, {"d": "2", "f": "1"}) == [
        "b has the version 2 instead of 1", "c 1 has other files than before", "d 1 is missing", "g 1 is new",
    ]  # fmt: skip
    assert differences([package("a")], [package("a", digest="")], {}) == [
        "a 1 came as a wheel, and now only its source is there"
    ]


def test_more_packages_than_can_be_recorded_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest would not be bound by the approval."""
    monkeypatch.setattr(contents, "MAX_PACKAGES", 0)
    with pytest.raises(BuildFailed, match="1 packages were installed"):
        installed(venv(tmp_path, FILES), ())
