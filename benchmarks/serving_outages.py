"""Measures predictions with tokens before outages of the dashboard, in them, and after a restart in them.

Run `python -m benchmarks.serving_outages [--rounds 10] [--requests 10000] [--rate 100]`. The dashboard is in
this program, which refuses connections, accepts requests without an answer, or answers each after five
seconds. Rounds alternate between the time before and in each outage, so that load on the machine affects all.
Requests are sent at a fixed rate, and times count from when each was due. A phase begins with the outage,
before the server has noticed it. The goal is that all are answered and that p99 grows by a fifth at most.

An outage of an hour is shortened by the clock: the server is restarted in it with a file of answers that are
an hour older than they were.
"""

import argparse
import asyncio
import contextlib
import hashlib
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import uvloop

from benchmarks.serving_predict import Case, Server, build_model, request, serving
from workers.serving.known_callers import KnownCallers

TOKEN, OTHER = "ty_benchmark", "ty_never_seen"
HOUR = 3600.0
SLOW_SECONDS = 5.0
CONNECTIONS = 8
MODEL_WAIT = 120.0

Outage = Literal["", "refusal", "silence", "slowness"]
OUTAGES: tuple[Outage, ...] = ("refusal", "silence", "slowness")


class Dashboard:
    """Answers a prediction server's questions about one token, except in an outage."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.outage: Outage = ""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def begin(self, outage: Outage) -> None:
        """Begin an outage, or end it with an empty one."""
        self.outage = outage
        for writer in list(self._open):
            writer.transport.abort()
        if self._server is not None and outage == "refusal":
            self._server.close()
            self._server = None
        elif self._server is None and outage != "refusal":
            self._server = await asyncio.start_server(self._converse, "127.0.0.1", self.port)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await self._answer(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        await reader.readexactly(int(lines.get("content-length", 0)))
        if self.outage == "silence":
            await reader.read()
        if self.outage == "slowness":
            await asyncio.sleep(SLOW_SECONDS)
        path = head.split(" ")[1]
        if "/serving/releases" in path and "after=" in path:
            await asyncio.sleep(25)
        body = json.dumps(_answer_to(head)).encode()
        status = 401 if OTHER in head else 200
        if writer.is_closing():
            raise ConnectionError
        writer.write(b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()


def _answer_to(head: str) -> dict[str, Any]:
    access = {"endpoints": ["m"], "expires": None, "warning": None}
    if "/serving/releases" in head:
        return {"sequence": 1, "releases": []}
    if head.startswith("POST") and "/serving/access" in head:
        return {"tokens": [{"digest": hashlib.sha256(TOKEN.encode()).hexdigest(), **access}]}
    return access


def request_of(token: str) -> bytes:
    """Return a request with a token, as bytes."""
    line = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n".encode()
    return request(Case(1, 1)).replace(b"Host: localhost\r\n", line, 1)


class Phase:
    """The answers to some requests: the seconds of those that succeeded, and how many did not."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failed = 0

    @property
    def p99_ms(self) -> float:
        return float(np.percentile(self.seconds, 99)) * 1000

    @property
    def p50_ms(self) -> float:
        return float(np.percentile(self.seconds, 50)) * 1000


async def send(server: Server, count: int, rate: float, token: str = TOKEN) -> Phase:
    """Send requests at a fixed rate."""
    host, port = server.url.removeprefix("http://").split(":")
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(host, int(port)))
    content, phase = request_of(token), Phase()

    async def one(due: float) -> None:
        reader, writer = connection = await free.get()
        writer.write(content)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if head.startswith(b"http/1.1 200"):
            phase.seconds.append(time.perf_counter() - due)
        else:
            phase.failed += 1
        free.put_nowait(connection)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(due))
    while not free.empty():
        free.get_nowait()[1].close()
    return phase


async def until_answered(server: Server) -> None:
    """Wait until the server answers a known token.

    Raises:
        TimeoutError: it did not within `MODEL_WAIT`.
    """
    async with asyncio.timeout(MODEL_WAIT):
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if not (await send(server, 1, 1)).failed:
                    return
            await asyncio.sleep(0.2)


def make_older(file: Path, seconds: float) -> None:
    """Write the file of answers as if they had been given earlier."""
    callers = KnownCallers(file, HOUR * 24)
    for caller in callers._callers.values():
        caller.confirmed -= seconds
    callers._is_changed = True
    changed = callers.to_save()
    if changed is None or callers.is_empty:
        raise RuntimeError(f"{file} has no answers")
    callers.save(changed)


@contextlib.asynccontextmanager
async def running(folder: Path, dashboard: Dashboard) -> AsyncIterator[Server]:
    """Run a prediction server that needs tokens."""
    arguments = ("--host", "0.0.0.0", "--dashboard", f"http://127.0.0.1:{dashboard.port}")
    manager = serving(folder, {"m": folder / "model.keras"}, {}, arguments)
    # In a thread, because the dashboard of this program must answer meanwhile.
    server = await asyncio.to_thread(manager.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


async def compare(folder: Path, options: argparse.Namespace) -> None:
    """Measure all phases and print them."""
    dashboard = Dashboard(options.port)
    await dashboard.begin("")
    phases: dict[Outage, list[Phase]] = {outage: [] for outage in ("", *OUTAGES)}
    before, count = phases[""], options.requests // options.rounds
    async with running(folder, dashboard) as server:
        await until_answered(server)
        for _ in range(options.rounds):
            for outage, measured in phases.items():
                await dashboard.begin("")
                await asyncio.sleep(options.pause)
                await dashboard.begin(outage)
                measured.append(await send(server, count, options.rate))
        await dashboard.begin("")
        await asyncio.sleep(options.pause)
    for outage, measured in phases.items():
        _print(outage or "before", measured, before)
    for outage in OUTAGES:
        make_older(folder / "home" / "callers", HOUR)
        await dashboard.begin(outage)
        async with running(folder, dashboard) as server:
            await until_answered(server)
            _print(f"{outage}, restarted", [await send(server, count, options.rate)], before)
            began = time.perf_counter()
            unknown = await send(server, 1, 1, OTHER)
            took = (time.perf_counter() - began) * 1000
            print(f"{'':22s} an unknown token: {unknown.failed} refused after {took:.1f} ms")


def _print(name: str, phases: list[Phase], before: list[Phase]) -> None:
    p50, p99 = (statistics.median(getattr(one, key) for one in phases) for key in ("p50_ms", "p99_ms"))
    # Of phases that follow each other: the load on the machine was about the same.
    pairs = (
        zip(phases, before, strict=True) if len(phases) == len(before) else itertools.product(phases, before)
    )
    ratios = sorted(one.p99_ms / other.p99_ms for one, other in pairs)
    ratio = f"x{statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}"
    answered, failed = sum(len(one.seconds) for one in phases), sum(one.failed for one in phases)
    figures = f"{answered} of {answered + failed} answered, p50 {p50:6.2f}, p99 {p99:7.2f} ms ({ratio})"
    print(f"{name:22s} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=10_000, help="in each kind of outage")
    parser.add_argument("--rate", type=float, default=100, help="requests per second")
    parser.add_argument("--pause", type=float, default=6, help="seconds between an outage and the next phase")
    parser.add_argument("--port", type=int, default=8765, help="of this program's dashboard")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_model(folder / "model.keras")
        uvloop.run(compare(folder, options))


if __name__ == "__main__":
    main()
