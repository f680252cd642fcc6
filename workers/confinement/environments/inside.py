"""The program that builds an environment inside its sandbox: `python -I inside.py PLAN`.

It needs only the standard library. The plan is a file, since command lines can be read by others.
"""

import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

FALLBACK = "zz_trainyard.pth"
"""The file of an environment that adds the folders of this program's packages, behind its own."""
CHUNK = 2**16


class Plan(TypedDict):
    """What to install, and how.

    Attributes:
        folder: the new environment.
        packages: folders with packages that it sees behind its own.
        requirements, constraints: files.
        uv: the path to uv.
        options: its options for the index.
        socket: the proxy's socket; empty without one.
        port: the proxy's port on the loopback interface; 0 without one.
    """

    folder: str
    packages: list[str]
    requirements: str
    constraints: str
    uv: str
    options: list[str]
    socket: str
    port: int


def main(place: str) -> int:
    """Build the environment in a plan; return an exit status."""
    plan: Plan = json.loads(Path(place).read_text())
    port = _forward(plan["socket"]) if plan["socket"] else plan["port"]
    variables = dict(os.environ)
    if port:
        proxy = f"http://127.0.0.1:{port}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            variables[name] = variables[name.lower()] = proxy
    _create(plan)
    # A recorded set of packages can be empty.
    if not Path(plan["requirements"]).read_text().strip():
        sys.stdout.write("No packages are needed beside those that are present.\n")
        return 0
    return _install(plan, variables)


def _create(plan: Plan) -> None:
    """Create an environment without its own packages. It sees this program's."""
    folder = Path(plan["folder"])
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    (_site_packages(plan) / FALLBACK).write_text("".join(f"{path}\n" for path in plan["packages"]))


def _site_packages(plan: Plan) -> Path:
    (folder,) = Path(plan["folder"]).glob("lib/python*/site-packages")
    return folder


def _interpreter(plan: Plan) -> str:
    return str(Path(plan["folder"]) / "bin" / "python")


def _install(plan: Plan, variables: dict[str, str]) -> int:
    """Install missing packages; uv counts this program's packages as the environment's.

    It does not see them in their folders. So they are listed in the environment while it works, with their
    metadata and without files, and it replaces those that the code needs in another version.
    """
    present = list(_list_present(plan))
    constraints = ["-c", plan["constraints"]] if Path(plan["constraints"]).stat().st_size else []
    status = _run(
        [
            *(plan["uv"], "pip", "install", "--compile-bytecode", "-r", plan["requirements"]),
            *(*constraints, "--python", _interpreter(plan), *plan["options"]),
        ],
        variables,
    )
    for folder in present:
        # It has removed those that it replaced.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
    return status


def _list_present(plan: Plan) -> Iterator[Path]:
    """List this program's packages in the environment; yield the folders with their metadata."""
    site_packages, names = _site_packages(plan), set[str]()
    for distribution in importlib.metadata.distributions(path=plan["packages"]):
        metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        name = re.sub(r"[-_.]+", "_", distribution.metadata["Name"] or "").lower()
        # The first one on the path is the one that is imported.
        if not name or name in names:
            continue
        names.add(name)
        folder = site_packages / f"{name}-{distribution.version}.dist-info"
        folder.mkdir()
        files = {"METADATA": metadata.partition("\n\n")[0] + "\n", "INSTALLER": "trainyard\n"}
        files["RECORD"] = "".join(f"{folder.name}/{file},,\n" for file in (*files, "RECORD"))
        for file, text in files.items():
            (folder / file).write_text(text)
        yield folder


def _run(command: list[str], variables: dict[str, str]) -> int:
    return subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603


def _forward(path: str) -> int:
    """Accept connections on a port in this sandbox, and forward each to a socket with a path."""
    listener = socket.create_server(("127.0.0.1", 0))
    # The limit of a socket's path is 108 bytes, that of a relative one is never reached.
    folder, name = os.path.split(path)
    os.chdir(folder)
    threading.Thread(target=_accept, args=(listener, name), daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def _accept(listener: socket.socket, name: str) -> None:
    while True:
        near, _ = listener.accept()
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            far.connect(name)
        except OSError:
            near.close()
            far.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # The other direction ends, too.
        for connection in (source, target):
            connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
