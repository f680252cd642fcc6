"""Makes packages for tests: wheels and source distributions, without a build tool."""

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path


def wheel(
    folder: Path, name: str, version: str = "1.0", *, code: str = "", requires: tuple[str, ...] = ()
) -> Path:
    """Write a wheel with one module."""
    info = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    files = {
        f"{name}.py": code or f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_hash(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    # Users of installations read it.
    path.chmod(0o644)
    return path


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


BACKEND = """
import base64, hashlib, io, os, zipfile
def get_requires_for_build_wheel(settings=None):
    return []
def build_wheel(folder, settings=None, metadata=None):
    {code}
    name = "{name}-{version}-py3-none-any.whl"
    info = "{name}-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("{name}.py", "FOUND = " + repr(found))
        archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "/RECORD", "")
    return name
"""


def source(folder: Path, name: str, code: str, version: str = "1.0") -> Path:
    """Write a source distribution whose build executes code; it sets `found`."""
    indented = code.strip().replace("\n", "\n    ")
    files = {
        "pyproject.toml": (
            f'[project]\nname = "{name}"\nversion = "{version}"\n'
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "backend.py": BACKEND.format(code=indented, name=name, version=version),
    }
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for place, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{place}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    path.chmod(0o644)
    return path


def index_of(wheels: Path, folder: Path) -> None:
    """Write the pages for a simple index over a folder's files; they are served from one root."""
    names: dict[str, list[str]] = {}
    for file in sorted(wheels.iterdir()):
        names.setdefault(file.name.partition("-")[0], []).append(file.name)
    for name, files in names.items():
        page = folder / "simple" / name
        page.mkdir(parents=True)
        links = "".join(f'<a href="/{wheels.name}/{file}">{file}</a>' for file in files)
        (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
