#!/usr/bin/env python
"""Builds and signs the release of the current commit in dist/: source archive, bills of materials, digests.

TRAINYARD_SIGNING_KEY names a file with an Ed25519 private key in PEM format. Needs git, and no network.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

VARIABLE = "TRAINYARD_SIGNING_KEY"
LOCKS = ("requirements.lock", "requirements-gpu.lock", "requirements-gpu12.lock")
BOM_OPTIONS = ("--pyproject", "pyproject.toml", "--output-reproducible", "--output-format", "JSON")


def signing_key() -> Ed25519PrivateKey:
    """Return the key of the person who releases.

    Raises:
        ValueError: no file is named, or it cannot be read, or it holds no Ed25519 key without a password.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        raise ValueError(f"{VARIABLE} is not set. It names a PEM file with an Ed25519 private key.")
    try:
        key = load_pem_private_key(Path(path).read_bytes(), password=None)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{VARIABLE}={path}: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{VARIABLE}={path} holds a key of another kind; an Ed25519 key is needed.")
    return key


def output(*command: str, **environment: str) -> bytes:
    """Run a command and return its output.

    Raises:
        ValueError: the command failed.
    """
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise ValueError(f"{' '.join(command[:2])} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def build(folder: Path) -> None:
    """Write the archive and the bills of materials of the current commit into `folder`.

    Raises:
        ValueError: tracked files differ from the commit, or a tool failed.
    """
    if output("git", "status", "--porcelain", "--untracked-files=no"):
        raise ValueError("Tracked files have changes. Commit them first: a release is built from a commit.")
    version = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
    name = f"trainyard-{version}"
    archive = output("git", "archive", "--format=tar", f"--prefix={name}/", "HEAD")
    (folder / f"{name}.tar.gz").write_bytes(gzip.compress(archive, mtime=0))
    seconds = output("git", "log", "-1", "--format=%ct").decode().strip()
    tool = str(Path(sys.executable).parent / "cyclonedx-py")
    for lock in LOCKS:
        bom = output(tool, "requirements", *BOM_OPTIONS, lock, SOURCE_DATE_EPOCH=seconds)
        (folder / f"{name}-{Path(lock).stem}.cdx.json").write_bytes(bom)


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Write the digests of all files in `folder`, their signature and the public key."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())
    ]
    digests = "".join(lines).encode()
    (folder / "SHA256SUMS").write_bytes(digests)
    (folder / "SHA256SUMS.sig").write_bytes(key.sign(digests))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "signing-key.pub").write_bytes(public)


def main() -> int:
    """Replace dist/ by the release of the current commit, and return the exit code."""
    part = Path("dist.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        key = signing_key()
        part.mkdir()
        build(part)
        sign(part, key)
    except ValueError as error:
        shutil.rmtree(part, ignore_errors=True)
        sys.stderr.write(f"No release was made. {error}\n")
        return 2
    shutil.rmtree("dist", ignore_errors=True)
    part.rename("dist")
    sys.stdout.write("".join(f"dist/{path.name}\n" for path in sorted(Path("dist").iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
