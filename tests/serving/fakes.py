"""A tiny dashboard, and the prediction server as a process, for tests only."""

import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx2
import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.messages.fork import Confinement
from jobs.messages.release import Release, ReleasedVersion, SignedRelease

OWN_TOKEN = "ty_own"
SLOW_SECONDS = 5.0
HTTP = httpx2.Client(timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))
"""Shared by all checks: each new client loads all CA certificates, which takes 40 ms of CPU."""


def until[T](seen: Callable[[], T | None], seconds: float = 120.0, every: float = 0.02) -> T:
    """Wait until `seen` returns something true, and return it."""
    deadline = time.monotonic() + seconds
    while not (value := seen()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(every)
    return value


class Signer:
    """Signs releases as the dashboard would."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.public = base64.b64encode(raw)
        self.key_id = hashlib.sha256(raw).hexdigest()[:16]

    def sign(self, release: Release) -> SignedRelease:
        signature = base64.b64encode(self._key.sign(release.signed_bytes())).decode()
        return SignedRelease(release=release, signature=signature, key=self.key_id)


class FakeDashboard:
    """Exactly the calls that the prediction server makes.

    Attributes:
        outage: `silent` accepts requests and answers none, `slow` answers each after `SLOW_SECONDS`.
    """

    outage: Literal["", "silent", "slow"] = ""

    def __init__(self, port: int = 0) -> None:
        self.signer = Signer()
        self.files: dict[str, bytes] = {}
        self.tokens: dict[str, list[str]] = {OWN_TOKEN: ["serve"]}
        self.reports: list[dict[str, Any]] = []
        self._releases: dict[str, tuple[int, dict[str, Any]]] = {}
        self._sequence = 0
        self._news = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, number: int, file: bytes, **more: Any) -> ReleasedVersion:
        """Store an artifact; return the version that names it."""
        digest = hashlib.sha256(file).hexdigest()
        self.files[digest] = file
        return ReleasedVersion(number=number, digest=digest, bytes=len(file), signature={}, **more)

    def publish(self, release: Release) -> None:
        self.publish_raw(release.model, self.signer.sign(release).model_dump(mode="json"))

    def publish_raw(self, model: str, signed: dict[str, Any]) -> None:
        with self._news:
            self._sequence += 1
            self._releases[model] = (self._sequence, signed)
            self._news.notify_all()

    def poll(self, after: int | None, wait: float) -> dict[str, Any]:
        with self._news:
            if after == self._sequence:
                self._news.wait_for(lambda: self._sequence != after, min(wait, 2.0))
            news = [one for number, one in self._releases.values() if after is None or number > after]
            return {"sequence": self._sequence, "releases": news}

    def access_of(self, scopes: list[str]) -> dict[str, Any]:
        """Return the access that a token with these scopes gives."""
        reached = sorted(release["release"]["model"] for _, release in self._releases.values())
        return {"endpoints": reached if "predict" in scopes else None, "expires": None, "warning": None}

    def known_access(self, digests: list[str]) -> dict[str, Any]:
        by_digest = {hashlib.sha256(token.encode()).hexdigest(): token for token in self.tokens}
        known = [digest for digest in digests if digest in by_digest]
        return {"tokens": [{"digest": one, **self.access_of(self.tokens[by_digest[one]])} for one in known]}

    def suffer(self) -> None:
        """Wait before an answer as long as the outage demands."""
        if self.outage == "slow":
            time.sleep(SLOW_SECONDS)
        while self.outage == "silent":
            time.sleep(0.05)

    def last_report(self, model: str) -> dict[str, Any]:
        return next((report for report in reversed(self.reports) if report["model"] == model), {})

    def requests(self, model: str) -> dict[int, dict[str, int]]:
        """Return a model's reported counts, summed by server run."""
        reports = [report["traffic"] for report in self.reports if report["model"] == model]
        once = {(sent["run"], sent["sequence"]): sent for sent in reports if sent}
        sums_by_run: dict[int, dict[str, int]] = {}
        for (run, _), sent in sorted(once.items()):
            sums = sums_by_run.setdefault(run, {"ok": 0, "failed": 0, "rows": 0})
            for counts in (entry["counts"] for part in sent["intervals"] for entry in part["versions"]):
                sums["ok"] += sum(counts["latency"].values())
                sums["failed"] += sum(counts["errors"].values())
                sums["rows"] += counts["rows"]
        return sums_by_run

    def serves(self, model: str, generation: int, seconds: float = 120.0) -> None:
        """Wait until a report lists the generation as serving."""
        until(lambda: self.last_report(model).get("generation") == generation, seconds)

    def is_warm(self, model: str, *numbers: int) -> None:
        """Wait until reports list exactly these versions as available."""
        available = {str(number): "AVAILABLE" for number in numbers}
        until(lambda: self.last_report(model).get("versions") == available)


def _handler(dashboard: FakeDashboard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            dashboard.suffer()
            parts = urlsplit(self.path)
            token = (self.headers["authorization"] or "").removeprefix("Bearer ")
            scopes = dashboard.tokens.get(token)
            if scopes is None:
                return self._answer(401, b"{}")
            if parts.path == "/api/v1/serving/access":
                answer = dashboard.access_of(scopes)
                return self._answer(403 if answer["endpoints"] is None else 200, json.dumps(answer).encode())
            if "serve" not in scopes:
                return self._answer(403, b"{}")
            if parts.path == "/api/v1/serving/releases":
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                after = int(query["after"]) if "after" in query else None
                return self._answer(200, json.dumps(dashboard.poll(after, float(query["wait"]))).encode())
            file = dashboard.files.get(parts.path.removeprefix("/api/v1/artifacts/"))
            return self._answer(404, b"{}") if file is None else self._answer(200, file)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            dashboard.suffer()
            token = (self.headers["authorization"] or "").removeprefix("Bearer ")
            if "serve" not in dashboard.tokens.get(token, ()):
                return self._answer(401, b"{}")
            if self.path == "/api/v1/serving/access":
                return self._answer(200, json.dumps(dashboard.known_access(body["digests"])).encode())
            dashboard.reports.append(body)
            return self._answer(200, b"{}")

        def _answer(self, status: int, body: bytes) -> None:
            with contextlib.suppress(ConnectionError):
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


class ServerProcess:
    """`python -m workers.serving` in its own home."""

    def __init__(
        self,
        home: Path,
        dashboard: FakeDashboard,
        *arguments: str,
        confined: Confinement | None = None,
        variables: Mapping[str, str] | None = None,
        instance: int = 1,
        module: str = "workers.serving",
    ) -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        user = (
            ()
            if confined is None
            else ("workers.confinement.isolation.run_confined", confined.model_dump_json())
        )
        (home / "token").write_text(OWN_TOKEN)
        (home / "key").write_bytes(dashboard.signer.public)
        if confined is not None:
            for path in (home, *home.iterdir()):
                os.chown(path, confined.uid, confined.group)
        address = home / ("address.json" if instance == 1 else f"address-{instance}.json")
        address.unlink(missing_ok=True)
        files = {"token-file": "token", "public-key-file": "key", "address-file": "address.json"}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", *user, module, "--port", "0"),
                *("--dashboard", dashboard.url, "--home", str(home / "home")),
                *(part for name, file in files.items() for part in (f"--{name}", str(home / file))),
                *arguments,
            ],
            env={**os.environ, **(variables or {}), "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        until(lambda: address.exists() or self.process.poll() is not None, 120)
        assert self.process.poll() is None, "the prediction server ended at start"
        self.url: str = json.loads(address.read_text())["url"]

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def child_of(self, model: str, version: int | None = None) -> psutil.Process | None:
        """Return the process that answers for a model's version (for its only one)."""
        text = HTTP.get(f"{self.url}/monitoring/prometheus/metrics").text
        start = f'trainyard_serving_child_pid{{model_name="{model}",'
        start += f'version="{version}"' if version else ""
        pids = [int(line.split()[-1]) for line in text.splitlines() if line.startswith(start)]
        return psutil.Process(pids[0]) if pids and psutil.pid_exists(pids[0]) else None

    def fork_server(self) -> psutil.Process | None:
        """Return the process that forks model children, once its imports are done."""
        return next((one for one in self.children() if one.name() == "ty-modelforks"), None)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(30) == 0


@contextlib.contextmanager
def running(
    home: Path,
    dashboard: FakeDashboard,
    *arguments: str,
    confined: Confinement | None = None,
    variables: Mapping[str, str] | None = None,
    module: str = "workers.serving",
) -> Iterator[ServerProcess]:
    """Run a server, as a user without privileges if `confined` names one."""
    server = ServerProcess(home, dashboard, *arguments, confined=confined, variables=variables, module=module)
    try:
        yield server
    finally:
        server.stop()
