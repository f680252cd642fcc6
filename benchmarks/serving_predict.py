"""Compares our prediction server with a plain ASGI server that runs the same compiled function unbatched.

Run `python -m benchmarks.serving_predict [--rounds 3] [--seconds 3]`. Rounds alternate between the two, so
that load on the machine affects both; medians and their ratio are printed. The peer is a minimal server:
uvicorn, orjson, `jax.jit` of the model, one call per request. The model is a 784×64 MLP.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.contracts.release import Release, ReleasedVersion, SignedRelease
from workers.serving.releases.state import EndpointState, State

FEATURES = 784


class Case(NamedTuple):
    rows: int
    clients: int
    binary: bool = False


class Rate(NamedTuple):
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float  # per request, of all processes of the server; load on the machine hardly affects it


class Server(NamedTuple):
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        process = psutil.Process(self.pid)
        times = [one.cpu_times() for one in (process, *process.children())]
        return float(sum(one.user + one.system for one in times))


CASES = (
    Case(1, 1),
    Case(1, 16),
    Case(32, 1),
    Case(32, 16),
    Case(32, 1, binary=True),
    Case(32, 16, binary=True),
)


def build_model(path: Path) -> None:
    """Write the model in another process, so that this one does not import Keras."""
    code = (
        "import keras, sys\n"
        "x = keras.Input((784,), name='x'); h = keras.layers.Dense(64, activation='relu')(x)\n"
        "keras.Model(x, keras.layers.Dense(10, activation='softmax')(h)).save(sys.argv[1])"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, env={**os.environ, "KERAS_BACKEND": "jax"}
    )


@contextlib.contextmanager
def ours(folder: Path, model: Path, names: Sequence[str] = ("m",)) -> Iterator[Server]:
    """Start our server from a state file, without a dashboard. It serves the same file by several names."""
    key = Ed25519PrivateKey.generate()
    file = model.read_bytes()
    digest = hashlib.sha256(file).hexdigest()
    stored = folder / "store" / digest[:2] / digest
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(file)
    version = ReleasedVersion(number=1, digest=digest, bytes=len(file), signature={})
    endpoints = {}
    for name in names:
        release = Release(model=name, generation=1, production=1, versions=(version,), issued_at="")
        signature = base64.b64encode(key.sign(release.signed_bytes())).decode()
        signed = SignedRelease(release=release, signature=signature, key="")
        endpoints[name] = EndpointState(serving=signed, newest=signed)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    state = State(endpoints=endpoints)
    (home / "state.json").write_text(state.model_dump_json())
    (folder / "key").write_bytes(
        base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    )
    (folder / "token").write_text("none")
    address = folder / "address.json"
    address.unlink(missing_ok=True)  # of an earlier server in this folder
    command = [
        *(sys.executable, "-m", "workers.serving", "--port", "0", "--dashboard", "http://127.0.0.1:9"),
        *("--token-file", str(folder / "token"), "--public-key-file", str(folder / "key")),
        *("--home", str(home), "--artifacts", str(folder / "store"), "--address-file", str(address)),
    ]
    with _process(command, folder / "ours.log") as pid:
        yield Server(_url(address), pid)


@contextlib.contextmanager
def peer(folder: Path, model: Path) -> Iterator[Server]:
    """Start the plain server."""
    address = folder / "peer.json"
    command = [sys.executable, "-m", "benchmarks.serving_peer", str(model), str(address)]
    with _process(command, folder / "peer.log") as pid:
        yield Server(_url(address), pid)


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def _url(address: Path) -> str:
    content = _eventually(lambda: address.read_text() if address.exists() else "")
    return str(json.loads(content)["url"])


def _eventually[T](seen: Callable[[], T], seconds: float = 90) -> T:
    deadline = time.monotonic() + seconds
    while not (value := seen()):
        if time.monotonic() > deadline:
            raise TimeoutError("the server did not start")
        time.sleep(0.05)
    return value


def request(case: Case) -> bytes:
    """Return the request as bytes. It is the same for both servers, but only ours accepts binary tensors."""
    x = np.random.default_rng(0).random((case.rows, FEATURES), np.float32)
    if not case.binary:
        body = json.dumps({"instances": [[float(f"{value:.4f}") for value in row] for row in x]}).encode()
        return b"POST /v1/models/m:predict HTTP/1.1\r\nHost: b\r\nContent-Length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )
    tensor = {"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return (
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: b\r\nInference-Header-Content-Length: %d\r\n"
        b"Content-Length: %d\r\n\r\n%b"
    ) % (len(head), len(head) + x.nbytes, head + x.tobytes())


class Client(asyncio.Protocol):
    """Sends the same request again as soon as the response arrives."""

    def __init__(self, content: bytes, seconds: list[float]) -> None:
        self._content, self._seconds = content, seconds
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._content)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._pending += data
        head, found, body = self._pending.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._pending[:300].decode())
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) >= length:
            self._pending = b""
            self._seconds.append(time.perf_counter() - self._began)
            self._send()


async def measure(server: Server, case: Case, seconds: float) -> Rate:
    """Send requests as fast as `case.clients` connections can."""
    host, port = server.url.removeprefix("http://").split(":")
    taken: list[float] = []
    content = request(case)
    loop = asyncio.get_running_loop()
    transports = [
        (await loop.create_connection(lambda: Client(content, taken), host, int(port)))[0]
        for _ in range(case.clients)
    ]
    await asyncio.sleep(0.3)  # the first responses do not count
    taken.clear()
    began, used = time.perf_counter(), server.cpu_seconds()
    await asyncio.sleep(seconds)
    elapsed, used = time.perf_counter() - began, server.cpu_seconds() - used
    for transport in transports:
        transport.abort()
    p50, p99 = np.percentile(taken, [50, 99]) * 1000
    return Rate(len(taken) / elapsed, float(p50), float(p99), used * 1000 / len(taken))


def median(rates: list[Rate]) -> Rate:
    return Rate(*(statistics.median(column) for column in zip(*rates, strict=True)))


def report(case: Case, mine: Rate, theirs: Rate) -> None:
    label = f"{case.rows:3d} rows, {case.clients:2d} clients{', binary (peer: JSON)' if case.binary else ''}"
    shown = " | ".join(
        f"{rate.per_second:6.0f}/s p50 {rate.p50_ms:6.2f} p99 {rate.p99_ms:7.2f} cpu {rate.cpu_ms:5.2f} ms"
        for rate in (mine, theirs)
    )
    ratios = f"rate x{mine.per_second / theirs.per_second:.2f}, cpu x{mine.cpu_ms / theirs.cpu_ms:.2f}"
    print(f"{label:41s} {shown} | {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_model(folder / "model.keras")
        with ours(folder, folder / "model.keras") as mine, peer(folder, folder / "model.keras") as theirs:
            uvloop.run(until_warm(mine))
            for case in CASES:
                same = (mine, case), (theirs, case._replace(binary=False))
                rounds = [
                    [uvloop.run(measure(*one, given.seconds)) for one in same] for _ in range(given.rounds)
                ]
                report(case, *(median(list(column)) for column in zip(*rounds, strict=True)))


async def until_warm(server: Server) -> None:
    for _ in range(300):
        with contextlib.suppress(RuntimeError, IndexError):
            if (await measure(server, Case(1, 1), 0.1)).per_second > 0:
                return
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    main()
