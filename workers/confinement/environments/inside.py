"""The program that builds an environment inside of its sandbox: `python -I inside.py PLAN`.

It needs only the standard library. The plan is a file, since command lines can be read by others.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import TypedDict

FALLBACK = "zz_trainyard.pth"
"""The file of an environment that adds the folders of this program's packages, behind its own."""
CHUNK = 2**16


class Plan(TypedDict):
    """What to install, and how.

    Attributes:
        folder: the new environment.
        packages: folders of packages that it sees behind its own.
        requirements, constraints: files.
        pip: the command that runs pip; empty if uv is used.
        uv: the path of uv; empty if pip is used.
        options: options of uv that name the index.
        socket: the socket of the proxy; empty without one.
        port: the port of the proxy on the loopback interface; 0 without one.
        present: names and versions of the packages in `packages`.
    """

    folder: str
    packages: list[str]
    requirements: str
    constraints: str
    pip: list[str]
    uv: str
    options: list[str]
    socket: str
    port: int
    present: dict[str, str]


def main(place: str) -> int:
    """Build the environment of a plan; return an exit status."""
    plan: Plan = json.loads(Path(place).read_text())
    port = _forward(plan["socket"]) if plan["socket"] else plan["port"]
    variables = dict(os.environ)
    if port:
        proxy = f"http://127.0.0.1:{port}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            variables[name] = variables[name.lower()] = proxy
        # Also for the packages that a build of a source distribution needs.
        variables["PIP_PROXY"] = proxy
    _create(plan)
    # A recorded set of packages can be empty, which pip refuses.
    if not Path(plan["requirements"]).read_text().strip():
        sys.stdout.write("No packages are needed beside those that are present.\n")
        return 0
    return _install_by_uv(plan, variables) if plan["uv"] else _install_by_pip(plan, variables)


def _create(plan: Plan) -> None:
    """Create an environment without packages of its own that sees those of this program."""
    folder = Path(plan["folder"])
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    (found,) = folder.glob("lib/python*/site-packages")
    (found / FALLBACK).write_text("".join(f"{each}\n" for each in plan["packages"]))


def _interpreter(plan: Plan) -> str:
    return str(Path(plan["folder"]) / "bin" / "python")


def _install_by_pip(plan: Plan, variables: dict[str, str]) -> int:
    command = [*plan["pip"], "--python", _interpreter(plan), "install", "-r", plan["requirements"]]
    return _run([*command, "-c", plan["constraints"]], variables)


def _install_by_uv(plan: Plan, variables: dict[str, str]) -> int:
    """Find versions first, and then install those that are not present: uv does not see other folders."""
    resolved = Path(variables["TMPDIR"]) / "resolved.txt"
    python = ["--python", _interpreter(plan)]
    status = _run(
        [
            *(plan["uv"], "pip", "compile", plan["requirements"], "-c", plan["constraints"]),
            *("-o", str(resolved), "--quiet", "--no-annotate", "--no-header"),
            *python,
            *plan["options"],
        ],
        variables,
    )
    if status != 0:
        return status
    lines = resolved.read_text().splitlines()
    missing = [line for line in lines if not _is_present(line, plan["present"])]
    resolved.write_text("".join(f"{line}\n" for line in missing))
    if not any("==" in line for line in missing):
        sys.stdout.write("All packages are present already.\n")
        return 0
    command = [plan["uv"], "pip", "install", "--no-deps", "--compile-bytecode", "-r", str(resolved)]
    return _run([*command, *python, *plan["options"]], variables)


def _is_present(line: str, present: dict[str, str]) -> bool:
    found = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
    if found is None:
        return False
    return present.get(re.sub(r"[-_.]+", "-", found[1]).lower()) == found[2]


def _run(command: list[str], variables: dict[str, str]) -> int:
    return subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603


def _forward(path: str) -> int:
    """Accept connections on a port of this sandbox, and forward each to a socket with a path."""
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
        for each in (source, target):
            each.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
