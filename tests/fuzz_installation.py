"""Sends invalid input to a running installation for a time, and watches its parts.

`.venv/bin/python -m tests.fuzz_installation --seconds 3600` starts an installation in a home of its own, ends
it afterwards, and prints figures as JSON. The exit status is 1 after an internal error, a restart of a part,
a failed health check, or a part whose memory has more than doubled since its first minute.
"""

import argparse
import contextlib
import io
import json
import os
import random
import socket
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from tests import fuzzing
from tests.flow.yard import PROJECT, RunningYard, open_yard

PATIENCE = 30.0
"""Seconds of silence after which a request counts as unanswered."""
LOOK = 10.0
"""Seconds between two looks at the parts."""
GROWTH, SMALL = 2.0, 100 * 2**20
"""A part may grow by this factor, or by this many bytes."""
INTENDED = (503, 507)
SPEC = {
    "version": 1,
    "data": {"dataset": "iris"},
    "model": {"kind": "template", "template": "mlp", "args": {"units": 8, "layers": 1}},
    "fit": {"epochs": 1, "optimizer": "adam"},
    "search": {
        "algorithm": "random",
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "max_trials": 2,
        "space": [{"name": "units", "kind": "int", "min": 4, "max": 8, "step": 4}],
    },
}


class Fuzz:
    """The requests to one installation, and their answers."""

    def __init__(self, yard: RunningYard, seed: int) -> None:
        self.yard, self.dice, self.http = yard, random.Random(seed), httpx2.Client(timeout=PATIENCE)
        self.web, self.serving = yard.urls["web"], yard.urls["serving"]
        self.bearer = yard.bearer("ada")
        document = self.http.get(f"{self.web}/api/v1/openapi.json").json()
        self.schemas = document["components"]["schemas"]
        self.operations = [
            (method, path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            # They would end the project, or wait for a minute.
            if (method, path)
            not in {("delete", "/api/v1/projects/{slug}"), ("get", "/api/v1/serving/releases")}
        ]
        self.answers: Counter[str] = Counter()
        self.complaints: list[str] = []

    def note(self, kind: str, status: int | str, context: str) -> None:
        self.answers[f"{kind} {status}"] += 1
        if (isinstance(status, int) and status >= 500 and status not in INTENDED) or status == "no answer":
            self.complaints.append(f"{kind}: {context} → {status}")

    def ask(self, kind: str, method: str, url: str, **options: Any) -> None:
        try:
            answer = self.http.request(method, url, **options)
            self.note(kind, answer.status_code, f"{method} {url[:200]} {str(options)[:300]}")
        except httpx2.TimeoutException:
            self.note(kind, "no answer", f"{method} {url[:200]} {str(options)[:300]}")
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
            # A server may close the connection of a damaged request.
            self.note(kind, "closed", url)

    def rest(self) -> None:
        method, path, operation = self.dice.choice(self.operations)
        values = fuzzing.KNOWN | {"project": PROJECT, "slug": self.dice.choice([PROJECT, "iris"])}
        path = fuzzing.filled(path, self.dice, wild=self.dice.random() < 0.25, values=values)
        content = operation.get("requestBody", {}).get("content", {})
        body = b""
        if "application/json" in content:
            example = fuzzing.example(content["application/json"]["schema"], self.schemas)
            body = json.dumps(fuzzing.mutated(example, self.dice)).encode()
        if self.dice.random() < 0.1:
            body = fuzzing.nested(self.dice)
        sent = {"Content-Type": "application/json", **(self.bearer if self.dice.random() < 0.8 else {})}
        query = fuzzing.raw_query(self.dice).decode()
        self.ask("REST", method.upper(), f"{self.web}{path}?{query}", content=body, headers=sent)

    def experiment(self) -> None:
        body = {"project": PROJECT, "name": "fuzz", "spec": fuzzing.spec(SPEC, self.dice)}
        call = self.dice.choice(["validate", "validate", "validate", ""])
        url = f"{self.web}/api/v1/experiments/{call}".rstrip("/")
        self.ask("spec", "POST", url, json=body, headers=self.bearer)

    def upload(self) -> None:
        """Send a table or an archive with damaged bytes, which a worker then reads."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("config.json", "{}")
        good = self.dice.choice(
            [b"a,b\n" + b"1,2\n" * 50, archive.getvalue(), b"PAR1" * 20, b"\x93NUMPY" * 9]
        )
        damaged = bytearray(good)
        for _ in range(4):
            damaged[self.dice.randrange(len(damaged))] = self.dice.randrange(256)
        name = self.dice.choice(["a.csv", "a.zip", "a.parquet", "a.npz", "a.xlsx", "../a.csv", "a"])
        fields = {"project": PROJECT, "slug": f"fuzz-{self.dice.randrange(10**9)}"}
        url, files = f"{self.web}/api/v1/datasets", {"file": (name, bytes(damaged))}
        self.ask("upload", "POST", url, data=fields, files=files, headers=self.bearer)

    def predict(self) -> None:
        paths = [
            "/v1/models/x",
            "/v1/models/x:predict",
            "/v1/models/x/versions/1/metadata",
            "/v2",
            "/v2/health/ready",
        ]
        paths += [
            "/v2/models/x/infer",
            "/v2/models/%ff/infer",
            "/healthz",
            "/monitoring/prometheus/metrics",
            "//",
        ]
        body = json.dumps(
            fuzzing.mutated({"instances": [[1.0]], "inputs": [], "id": "1"}, self.dice)
        ).encode()
        content = fuzzing.nested(self.dice) if self.dice.random() < 0.2 else body
        query = fuzzing.raw_query(self.dice).decode()
        method = self.dice.choice(["GET", "POST", "PUT", "OPTIONS"])
        self.ask("prediction", method, f"{self.serving}{self.dice.choice(paths)}?{query}", content=content)

    def bytes(self) -> None:
        """Send a damaged head, or half a request, and close the connection."""
        base = urlsplit(self.dice.choice([self.web, self.serving]))
        lines = [b": ".join(pair) for pair in fuzzing.headers(self.dice)]
        path = self.dice.choice(
            [b"/", b"/api/v1/jobs", b"/healthz", b"/v2", b"*", b"/%00", b"http://x/", b"/\xff"]
        )
        verb = self.dice.choice([b"GET", b"POST", b"HEAD", b"PRI", b"CONNECT", b"\x16\x03\x01"])
        sent = b"\r\n".join(
            [verb + b" " + path + b" HTTP/1.1", b"host: " + base.netloc.encode(), *lines, b"", b""]
        )
        cut = self.dice.randrange(len(sent)) if self.dice.random() < 0.3 else len(sent)
        status: int | str = "closed"
        with contextlib.suppress(OSError), socket.create_connection((base.hostname, base.port), 10) as raw:
            raw.sendall(sent[:cut])
            if cut < len(sent):
                raw.shutdown(socket.SHUT_WR)
            raw.settimeout(0.5)
            words = raw.recv(100).split(b" ", 2)
            status = int(words[1]) if len(words) > 1 and words[1].isdigit() else "closed"
        self.note("bytes", status, repr(sent[:300]))

    def frames(self) -> None:
        url = self.web.replace("http", "ws", 1) + "/ws/v1/token"
        try:
            with connect(url, additional_headers=self.bearer, open_timeout=PATIENCE, close_timeout=2) as live:
                for _ in range(20):
                    live.send(fuzzing.frame(1, self.dice))
            self.note("frames", "sent", url)
        except TimeoutError:
            self.note("frames", "no answer", url)
        except ConnectionClosed as error:
            self.note("frames", f"closed with {error.rcvd.code if error.rcvd else 'no code'}", url)
        except (WebSocketException, OSError) as error:
            self.note("frames", f"closed: {type(error).__name__}", url)

    def step(self) -> None:
        chosen = [self.rest] * 8 + [self.experiment] * 4 + [self.predict] * 4 + [self.bytes] * 3
        self.dice.choice([*chosen, self.frames, self.upload])()


class Watch:
    """An installation's parts over time."""

    def __init__(self, yard: RunningYard) -> None:
        self.yard, self.began = yard, {name: part.pid for name, part in yard.parts().items()}
        self.memory: list[dict[str, int]] = []
        self.disk: list[int] = []
        self.slowest = 0.0
        self.complaints: list[str] = []

    def look(self, urls: list[str]) -> None:
        """Check the health of the servers, and measure memory and disk."""
        for url in urls:
            began = time.monotonic()
            if not httpx2.get(url, timeout=PATIENCE).is_success:
                self.complaints.append(f"{url} is not healthy")
            self.slowest = max(self.slowest, time.monotonic() - began)
        parts = self.yard.parts()
        for name, pid in self.began.items():
            if name not in parts or parts[name].pid != pid:
                self.complaints.append(f"{name} was restarted")
        self.began = {name: part.pid for name, part in parts.items()}
        self.memory.append({name: part.memory_info().rss for name, part in parts.items()})
        self.disk.append(sum(file.lstat().st_size for file in self.yard.home.rglob("*") if file.is_file()))

    def growth(self) -> list[str]:
        """Return the parts whose memory has grown too much since the first minute."""
        first = self.memory[min(len(self.memory) - 1, int(60 / LOOK))]
        last = self.memory[-1]
        return [
            f"{name} grew from {first[name]} to {last[name]} bytes"
            for name in first.keys() & last.keys()
            if last[name] > max(first[name] * GROWTH, first[name] + SMALL)
        ]


def run(seconds: float, seed: int) -> dict[str, Any]:
    """Return the figures of a fuzz; `complaints` is empty if all went well."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        with open_yard(Path(folder) / "home") as yard:
            yard.open()
            fuzz, watch = Fuzz(yard, seed), Watch(yard)
            urls = [f"{fuzz.web}/healthz", f"{fuzz.serving}/v2/health/live"]
            ends, next_look = time.monotonic() + seconds, 0.0
            while time.monotonic() < ends:
                if time.monotonic() >= next_look:
                    watch.look(urls)
                    next_look = time.monotonic() + LOOK
                fuzz.step()
            watch.look(urls)
            stopped = yard.stop()
            # A child of this process serves the calls of the test inside the installation.
            left = [process.name() for process in yard.everything() if process.ppid() != os.getpid()]
        complaints = [*fuzz.complaints, *watch.complaints, *watch.growth()]
        complaints += [f"left behind: {', '.join(left)}"] if left else []
        return {
            "seconds": seconds,
            "requests": fuzz.answers.total(),
            "answers": dict(sorted(fuzz.answers.items())),
            "memory": [watch.memory[0], watch.memory[-1]],
            "disk": [watch.disk[0], watch.disk[-1]],
            "slowest_health_check": round(watch.slowest, 2),
            "exit_status": stopped,
            "complaints": complaints[:50],
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    figures = run(arguments.seconds, arguments.seed)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    sys.exit(1 if figures["complaints"] else 0)
