"""Reads the Compose files as Docker Compose does, and starts commands as in a container."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.ops.conftest import ROOT

UID = 10001
"""The user of the image."""
PASSWORDS = {"TRAINYARD_DB_PASSWORD": "database-word", "TRAINYARD_BROKER_PASSWORD": "broker-word"}
FILES = ("docker-compose.yml", "docker-compose.gpu.yml")
_NAME = re.compile(r"\$\{(\w+)(:-|:\?|\})")


class MissingVariable(Exception):
    """A variable that must be set is not."""


def load(*names: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the files, the later ones merged over the first, with all variables replaced."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = _merged(merged, yaml.safe_load((ROOT / name).read_text()))
    found: dict[str, Any] = _replaced(merged, variables)
    return found


def image_environment() -> dict[str, str]:
    """Return the variables that the image sets."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith("ENV ")]
    return dict(word.split("=", 1) for line in lines for word in line.split()[1:])


def can_confine() -> bool:
    """Return whether this machine can give a command the user and capabilities of a container."""
    return os.geteuid() == 0 and sys.platform == "linux" and shutil.which("setpriv") is not None


def as_in_container(service: Mapping[str, Any], command: Sequence[str], volumes: Path) -> list[str]:
    """Return the command line that runs a command with the user and capabilities of a service.

    In a view of its own, the folders above Python, this program and the volumes are open, as in the image.

    Args:
        service: of the Compose file.
        command: the command with the addresses of this machine.
        volumes: a folder that is open to all, with one for each volume.
    """
    granted = [f"+{name.lower()}" for name in service.get("cap_add", ())]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    # At once: without capabilities it could not become another user.
    user = [] if service.get("user") == "0" else [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    bounds = f"--bounding-set={','.join(['-all', *granted])}"
    confined = ["setpriv", "--no-new-privs", *user, "--inh-caps=-all", bounds]
    entrypoint = [word.replace("=trainyard", f"={UID}") for word in service.get("entrypoint", ())]
    view = ["unshare", "--mount", "sh", "-euc", _opening(volumes), "sh"]
    return [*view, *confined, *entrypoint, *command]


def _opening(volumes: Path) -> str:
    """Return the script that makes places in closed folders visible to all users, and runs its arguments."""
    needed = {Path(place).resolve() for place in (sys.base_prefix, sys.prefix, ROOT, volumes)}
    closed = {place: folder for place in needed if (folder := _closed_above(place)) is not None}
    kept = "/mnt"  # in this view alone
    lines = ["umask 022", f"mount -t tmpfs none {kept}"]
    for number, place in enumerate(closed):
        lines += [f"mkdir {kept}/{number}", f"mount --bind '{place}' {kept}/{number}"]
    lines += [f"mount -t tmpfs -o mode=755 none '{folder}'" for folder in sorted(set(closed.values()))]
    for number, place in enumerate(closed):
        lines += [f"mkdir -p '{place}'", f"mount --bind {kept}/{number} '{place}'"]
    return "\n".join([*lines, 'exec "$@"'])


def _closed_above(place: Path) -> Path | None:
    """Return the outermost folder above that other users cannot enter."""
    return next((folder for folder in reversed(place.parents) if not folder.stat().st_mode & 0o001), None)


def _merged(first: Any, second: Any) -> Any:
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return second
    return first | {name: _merged(first.get(name), value) for name, value in second.items()}


def _replaced(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(inner, variables) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, variables) for inner in value]
    return _text(value, variables) if isinstance(value, str) else value


def _text(text: str, variables: Mapping[str, str]) -> str:
    """Replace `${NAME}`, `${NAME:-default}` and `${NAME:?message}`; defaults may have variables."""
    if (found := _NAME.search(text)) is None:
        return text
    name, operator = found[1], found[2]
    end, value = found.end(), variables.get(name, "")
    if operator != "}":
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        given = text[found.end() : end - 1]
        if not value and operator == ":?":
            raise MissingVariable(f"{name}: {given}")
        value = value or _text(given, variables)
    return text[: found.start()] + value + _text(text[end:], variables)
