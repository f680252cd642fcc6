"""Compares the CPU time of pages between this checkout and another one, in alternation.

Run `python -m benchmarks.pages --other FOLDER --home HOME [--user ada] [--rounds 12] [PATH ...]`. FOLDER is a
checkout of another commit with its `.venv`. HOME belongs to an installation that has ended and that neither
commit is too old for, such as one that `manage.py demo --exit` left; each server gets a migrated copy of it.
Both web servers run at the same time, and each round asks one of them for a page 20 times, then the other. So
other work on the machine slows both alike. For each page it prints the median CPU time of a request, here and
there, and the median of the rounds' ratios with their quartiles; below 1 this checkout is faster.
"""

import argparse
import http.client
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = ("/", "/jobs", "/jobs/6", "/queue", "/models", "/workers", "/approvals")
REQUESTS = 20
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
START_SECONDS = 60
LOGIN = """
from django.test import Client
from jobs.models import User
try:
    from webapp.accounts import cookie_names
    cookie_names.complete()
except ImportError:
    pass  # a commit whose cookies are not named after the installation
client = Client()
client.force_login(User.objects.get(username={user!r}))
print("cookie", "; ".join(f"{{name}}={{morsel.value}}" for name, morsel in client.cookies.items()))
"""


@dataclass(frozen=True, eq=False)
class Server:
    """A web server of a checkout, and the cookie with which it is asked."""

    process: subprocess.Popen[bytes]
    port: int
    cookie: str

    def get(self, path: str) -> int:
        """Ask for a page. Return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self.cookie})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def cpu_ms(self) -> float:
        """Return the CPU time of the process so far, in milliseconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_MS

    def measure(self, path: str) -> float:
        """Return the CPU time of one request in milliseconds."""
        before = self.cpu_ms()
        for _ in range(REQUESTS):
            self.get(path)
        return (self.cpu_ms() - before) / REQUESTS


@contextmanager
def serve(checkout: Path, home: Path, user: str) -> Iterator[Server]:
    """Run the web server of a checkout on a home."""
    python = checkout / ".venv/bin/python"
    environment = {**os.environ, "TRAINYARD_HOME": str(home), "TRAINYARD_ALLOWED_HOSTS": "127.0.0.1"}

    def manage(*arguments: str) -> str:
        command = [python, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
        ).stdout

    manage("migrate")
    output = manage("shell", "--no-imports", "--command", LOGIN.format(user=user))
    cookie = next(line for line in output.splitlines() if line.startswith("cookie ")).removeprefix("cookie ")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = listener.fileno()
        command = [python, "-m", "webapp.ops.web_server", "--fd", str(descriptor)]
        process = subprocess.Popen(command, cwd=checkout, env=environment, pass_fds=[descriptor])
        try:
            server = Server(process, listener.getsockname()[1], cookie)
            _wait(server)
            yield server
        finally:
            process.kill()
            process.wait()


def _wait(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if server.get("/healthz") == http.HTTPStatus.OK:
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def compare(here: Server, there: Server, path: str, rounds: int) -> str:
    """Return a line with the CPU times of a page and their ratio."""
    for server in (here, there):
        if any(server.get(path) != http.HTTPStatus.OK for _ in range(3)):
            return f"{path:12} is not a page of both"
    times = []
    for number in range(rounds):
        order = (here, there) if number % 2 else (there, here)
        measured = {server: server.measure(path) for server in order}
        times.append((measured[here], measured[there]))
    ratios = [mine / other for mine, other in times]
    low, middle, high = statistics.quantiles(ratios, n=4)
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return f"{path:12} {medians[0]:6.1f} ms {medians[1]:6.1f} ms {middle:6.3f} [{low:.3f}, {high:.3f}]"


def parser_of_two(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that name the other checkout, the home and the person."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--user", default="ada")
    return parser


@contextmanager
def serve_both(other: Path, home: Path, user: str) -> Iterator[list[Server]]:
    """Run the web servers of this checkout and of another one, each on a copy of a home."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = []
        for name, checkout in (("here", ROOT), ("there", other.resolve())):
            copied = shutil.copytree(home, folder / name, ignore=shutil.ignore_patterns("run"))
            servers.append(stack.enter_context(serve(checkout, copied, user)))
        yield servers


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the comparison of each page."""
    parser = parser_of_two(__doc__)
    parser.add_argument("paths", nargs="*", default=PATHS, metavar="PATH")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args(arguments)
    with serve_both(options.other, options.home, options.user) as servers:
        print(f"{'page':12} {'here':>9} {'there':>9}  ratio [quartiles]")
        for path in options.paths:
            print(compare(*servers, path, options.rounds), flush=True)


if __name__ == "__main__":
    main()
