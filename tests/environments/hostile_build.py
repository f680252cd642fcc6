"""Builds a hostile package at one level: `python -m tests.environments.hostile_build LEVEL`.

It prints its attempts with their results, as JSON. Tests start it as root, and as a user without privileges.
"""

import contextlib
import functools
import json
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from jobs.messages.sandbox import Level
from tests.environments.conftest import Bench, benches, claim, python_of, served, serving
from tests.environments.packages import index_of, source
from tests.sandbox.conftest import UIDS
from workers.confinement.environments import uv_command
from workers.confinement.environments.building import Builder, BuildLimits
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.sandbox.levels import find_levels

CODE = """
import socket
found = {{}}
def tried(name, action):
    try:
        action()
        found[name] = "possible"
    except OSError as error:
        found[name] = type(error).__name__
tried("elsewhere", lambda: socket.create_connection(("127.0.0.1", {port}), timeout=2))
def by_datagram():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {port}))
tried("datagram", by_datagram)
def by_proxy():
    port = int(os.environ["HTTP_PROXY"].rpartition(":")[2])
    near = socket.create_connection(("127.0.0.1", port), timeout=5)
    near.sendall(b"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n")
    if b" 200 " not in near.recv(100):
        raise PermissionError
tried("by proxy", by_proxy)
tried("secret", lambda: open({secret!r}).close())
tried("outside", lambda: open({outside!r}, "w").close())
"""


def findings(bench: Bench, level: Level) -> dict[str, Any]:
    """Build the package, and return its attempts, and the messages that arrived elsewhere."""
    secret, outside = bench.root / "secret", bench.root / "outside"
    secret.write_text("secret")
    secret.chmod(0o600)
    with (
        serving(bench.root) as index,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(other.getsockname())
        code = CODE.format(port=other.getsockname()[1], secret=str(secret), outside=str(outside))
        source(bench.wheels, "hostile", code)
        index_of(bench.wheels, bench.root)
        bench.index = served(bench, index.address)
        held = bench.ensure("hostile")
        received = []
        for name, receive in (("connection", other.accept), ("datagram", lambda: datagrams.recv(10))):
            for listener in (other, datagrams):
                listener.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                receive()
                received.append(name)
        attempts = json.loads(python_of(held, "import hostile, json; print(json.dumps(hostile.FOUND))"))
    return {
        "asked": index.asked, "received": received, "attempts": attempts, "outside": outside.exists(),
        "level": held.facts.level,
    }  # fmt: skip


def main() -> None:
    level = Level(sys.argv[1])
    users = RunnerUsers(UIDS, Path(tempfile.mkdtemp()))
    with claim(users) as owner:
        states = find_levels(None if owner is None else lambda: owner, allowed=(level,))
    states = tuple(state for state in states if state.level is level)
    if not states[0].offered:
        sys.stdout.write(json.dumps({"missing": states[0].reason}))
        return
    builder = Builder(states, uv_command.find_uv(), functools.partial(claim, users), BuildLimits(seconds=120))
    with benches(builder) as bench:
        sys.stdout.write(json.dumps(findings(bench, level)))


if __name__ == "__main__":
    main()
