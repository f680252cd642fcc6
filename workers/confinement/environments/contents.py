"""Finds the packages in a built environment, and digests of their files.

The files come from strangers. They are read only after the build has ended and they all belong to this
process, so that nothing can exchange them meanwhile.
"""

import csv
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from jobs.messages.environments import MAX_PACKAGES, InstalledPackage
from workers.confinement.environments import inside
from workers.confinement.environments.failures import BuildFailed

MAX_RECORD = 64 * 2**20
"""Bytes of a list of files. That of a large package has about three million."""
_WRITTEN_BY_INSTALLERS = frozenset(
    {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"}
)
_PROGRAMS = "bin"
"""The folder of programs, whose first line has the path of the environment."""
_INTERPRETER = re.compile(r"python[0-9.]*")
"""Runs are started by such a program: a package that brings one would replace it."""


def installed(venv: Path, built: Collection[str]) -> tuple[InstalledPackage, ...]:
    """Return the packages in a sealed environment, sorted by name.

    Args:
        venv: the environment.
        built: packages that were built from source, by name: two builds of one source differ.

    Raises:
        BuildFailed: there are too many to record.
    """
    packages: dict[str, InstalledPackage] = {}
    files = _FileDigests(venv)
    for site in sorted(venv.glob("lib/python*/site-packages")):
        lists = {folder: _read_record(folder) for folder in sorted(site.glob("*.dist-info"))}
        unlisted = _unlisted(site, lists.values())
        for folder, names in lists.items():
            title, _, version = folder.name.removesuffix(".dist-info").partition("-")
            name = canonicalize_name(title)[:200]
            digest = "" if name in built else files.digest_of(site, names, unlisted)
            packages[name] = InstalledPackage(name=name, version=version[:100], digest=digest)
    if len(packages) > MAX_PACKAGES:
        raise BuildFailed(f"{len(packages)} packages were installed; at most {MAX_PACKAGES} can be recorded.")
    return tuple(package for _, package in sorted(packages.items()))


def differences(
    required: Iterable[InstalledPackage], installed: Iterable[InstalledPackage], present: Mapping[str, str]
) -> list[str]:
    """Return what differs in an environment from the packages that it must have, as clauses.

    Args:
        required: the packages that it must have.
        installed: those that were installed.
        present: names and versions of this program's packages, which it sees behind its own.
    """
    installed_now = {package.name: package for package in installed}
    clauses = []
    for package in required:
        now = installed_now.pop(package.name, None)
        if now is None:
            if present.get(package.name) != package.version:
                clauses.append(f"{package.name} {package.version} is missing")
        elif now.version != package.version:
            clauses.append(f"{package.name} has the version {now.version} instead of {package.version}")
        elif package.digest and not now.digest:
            clauses.append(
                f"{package.name} {package.version} came as a wheel, and now only its source is there"
            )
        elif package.digest and now.digest != package.digest:
            clauses.append(f"{package.name} {package.version} has other files than before")
    return [*clauses, *(f"{package.name} {package.version} is new" for package in installed_now.values())]


class _FileDigests:
    """Digests an environment's files, each read once."""

    def __init__(self, venv: Path) -> None:
        self._venv = venv.resolve()
        self._known: dict[str, str] = {}

    def digest_of(self, site: Path, names: Collection[str], unlisted: Collection[str]) -> str:
        """Return the digest of a package's files, and those that may belong to any; empty without files.

        Args:
            site: the folder with all packages.
            names: the files that the package lists.
            unlisted: the files that no package lists.
        """
        if not names:
            return ""
        try:
            lines = [f"{name}\0{self._digest(site, name)}\n" for name in sorted({*names, *unlisted})]
        except (OSError, ValueError):
            return ""
        # Names of files need not be UTF-8.
        return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()

    def _digest(self, site: Path, name: str) -> str:
        # A package that was built here could have links to any place.
        real = os.path.realpath(site / name)
        if not real.startswith(f"{self._venv}{os.sep}") or not stat.S_ISREG(os.lstat(real).st_mode):
            return "-"
        if real not in self._known:
            with open(real, "rb") as file:  # noqa: PTH123  a path without links
                self._known[real] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._known[real]


def _read_record(folder: Path) -> frozenset[str]:
    """Return the paths that equal installations of a package share; none without a readable list."""
    record = folder / "RECORD"
    try:
        facts = record.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_RECORD:
            return frozenset()
        with record.open(newline="", encoding="utf-8") as file:
            names = {os.path.normpath(row[0]) for row in csv.reader(file) if row and row[0]}
    except (OSError, ValueError, csv.Error):
        return frozenset()
    return frozenset(name for name in names if _is_reproducible(name))


def _unlisted(site: Path, lists: Iterable[Collection[str]]) -> frozenset[str]:
    """Return the paths to files that no package lists: a package writes its list itself."""
    listed = {name for names in lists for name in names}
    paths = {
        str((Path(place) / name).relative_to(site)) for place, _, names in os.walk(site) for name in names
    }
    return frozenset(name for name in paths - listed if name != inside.FALLBACK and _is_reproducible(name))


def _is_reproducible(name: str) -> bool:
    """Return whether a file is equal in equal installations."""
    parts = PurePosixPath(name).parts
    outside = [part for part in parts if part != ".."]
    by_installer = parts[0].endswith(".dist-info") and parts[-1] in _WRITTEN_BY_INSTALLERS
    is_program = parts[0] == ".." and outside[:1] == [_PROGRAMS] and not _INTERPRETER.fullmatch(parts[-1])
    # A compiled file in another folder is imported also without a source.
    is_compiled = name.endswith(".pyc") and parts[-2:-1] == ("__pycache__",)
    return not (by_installer or is_program or is_compiled or "\0" in name)
