"""Compares our prediction server with others that run the same compiled function unbatched.

Run `python -m benchmarks.serving_predict [--peers bare litserve mlflow] [--python PYTHON] [--rounds 3]
[--seconds 3]`. Rounds alternate between the servers, so that load on the machine affects all; medians and
their ratios are printed. `bare` is a minimal server: uvicorn, orjson, `jax.jit` of the model, one call per
request. The model is a 784×64 MLP.

LitServe and MLflow run by `--python`, an environment of their own, because they need other versions of
packages:

    python -m venv FOLDER && FOLDER/bin/pip install litserve mlflow keras jax orjson uvloop httptools
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.messages.release import Release, ReleasedVersion, SignedRelease
from workers.serving.releases.state import EndpointState, State

FEATURES = 784
PREDICT_PATH = "/v1/models/m:predict"


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
    path: str = PREDICT_PATH

    def cpu_seconds(self) -> float:
        process = psutil.Process(self.pid)
        times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
        return float(sum(one.user + one.system for one in times))


PEERS = ("bare", "litserve", "mlflow")
CASES = (
    *(Case(rows, clients) for rows in (1, 32) for clients in (1, 16, 64)),
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
    with serving(folder, dict.fromkeys(names, model), {}) as server:
        yield server


@contextlib.contextmanager
def serving(
    folder: Path, models: Mapping[str, Path], variables: Mapping[str, str], arguments: Sequence[str] = ()
) -> Iterator[Server]:
    """Start our server for several models, with additional environment variables and arguments."""
    key = Ed25519PrivateKey.generate()
    endpoints = {}
    for name, model in models.items():
        release = Release(
            model=name, generation=1, production=1, versions=(_store(folder, model),), issued_at=""
        )
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
        *arguments,
    ]
    with _process(command, folder / "ours.log", variables) as pid:
        yield Server(_address(address)["url"], pid)


def _store(folder: Path, model: Path) -> ReleasedVersion:
    file = model.read_bytes()
    digest = hashlib.sha256(file).hexdigest()
    stored = folder / "store" / digest[:2] / digest
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(file)
    return ReleasedVersion(number=1, digest=digest, bytes=len(file), signature={})


@contextlib.contextmanager
def peer(folder: Path, model: Path, name: str, python: str) -> Iterator[Server]:
    """Start another server of the same model.

    Args:
        folder: of its files and its log.
        model: the model's file.
        name: of `PEERS`.
        python: the interpreter that has its packages.
    """
    address = folder / f"{name}.json"
    command = [python, "-m", f"benchmarks.peers.serving_{name}", str(model), str(address)]
    with _process(command, folder / f"{name}.log", {}) as pid:
        content = _address(address)
        yield Server(content["url"], pid, content.get("path", PREDICT_PATH))


@contextlib.contextmanager
def _process(command: list[str], log: Path, variables: Mapping[str, str]) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **variables})
        try:
            yield process.pid
        finally:
            below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.terminate()
            process.wait(30)
            # LitServe leaves its workers behind, and they would slow down the next round.
            for left in below:
                with contextlib.suppress(psutil.NoSuchProcess):
                    left.kill()


def _address(file: Path) -> dict[str, str]:
    addresses: dict[str, str] = json.loads(_eventually(lambda: file.read_text() if file.exists() else ""))
    return addresses


def _eventually[T](seen: Callable[[], T], seconds: float = 90) -> T:
    deadline = time.monotonic() + seconds
    while not (value := seen()):
        if time.monotonic() > deadline:
            raise TimeoutError("the server did not start")
        time.sleep(0.05)
    return value


def request(case: Case, path: str = PREDICT_PATH) -> bytes:
    """Return the request as bytes. It is the same for all servers, but only ours accepts binary tensors."""
    x = np.random.default_rng(0).random((case.rows, FEATURES), np.float32)
    if not case.binary:
        body = json.dumps({"instances": [[float(f"{value:.4f}") for value in row] for row in x]}).encode()
        return (
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b"
        ) % (path.encode(), len(body), body)
    tensor = {"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return (
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: %d\r\n"
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
        head, separator, body = self._pending.partition(b"\r\n\r\n")
        if not separator:
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
    content = request(case, server.path)
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


def report(case: Case, rates: dict[str, Rate]) -> None:
    """Print a line for each server; `rates` begins with ours."""
    print(f"{case.rows} rows, {case.clients} clients{', binary (others: JSON)' if case.binary else ''}")
    mine = next(iter(rates.values()))
    for name, rate in rates.items():
        ratios = f"ours x{mine.per_second / rate.per_second:.2f}, cpu x{mine.cpu_ms / rate.cpu_ms:.2f}"
        figures = [f"{rate.per_second:7.0f}/s", f"p50 {rate.p50_ms:6.2f} p99 {rate.p99_ms:7.2f} ms"]
        figures += [f"cpu {rate.cpu_ms:5.2f} ms", *([] if rate is mine else [ratios])]
        print(f"  {name:10s} {' | '.join(figures)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["bare"])
    parser.add_argument("--python", default=sys.executable, help="the interpreter of LitServe and MLflow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        model = folder / "model.keras"
        build_model(model)
        servers = {"trainyard": stack.enter_context(ours(folder, model))}
        for one in options.peers:
            python = sys.executable if one == "bare" else options.python
            servers[one] = stack.enter_context(peer(folder, model, one, python))
        for server in servers.values():
            uvloop.run(until_warm(server))
        for case in CASES:
            report(case, compared(servers, case, options.rounds, options.seconds))


def compared(servers: dict[str, Server], case: Case, rounds: int, seconds: float) -> dict[str, Rate]:
    """Return each server's median rate; the rounds alternate between the servers."""
    rates: dict[str, list[Rate]] = {name: [] for name in servers}
    for _ in range(rounds):
        for number, (name, server) in enumerate(servers.items()):
            sent = case if number == 0 else case._replace(binary=False)
            rates[name].append(uvloop.run(measure(server, sent, seconds)))
    return {name: median(measured) for name, measured in rates.items()}


async def until_warm(server: Server) -> None:
    """Wait until a server answers.

    Raises:
        TimeoutError: it did not within two minutes.
    """
    for _ in range(400):
        with contextlib.suppress(RuntimeError, IndexError, OSError):
            if (await measure(server, Case(1, 1), 0.1)).per_second > 0:
                return
        await asyncio.sleep(0.2)
    raise TimeoutError(f"no answer from {server.url}{server.path}")


if __name__ == "__main__":
    main()
