"""Measures how much large bodies to one model delay single rows to another.

Run `python -m benchmarks.serving_large_bodies [--rounds 5] [--seconds 4] [--megabytes 20]`. Rounds alternate:
single rows alone, then single rows while one client sends JSON bodies of that size to the other model, one
after the other. The goal is that p99 grows by at most 20 ms. Single rows are sent at a fixed rate, so a
server that is blocked delays as many of them as would have arrived; times count from when a row was due.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import uvloop

from benchmarks.serving_predict import FEATURES, Case, Server, build_model, ours, request, until_warm

CONNECTIONS = 8


class Delays(NamedTuple):
    p50_ms: float
    p99_ms: float
    largest_ms: float
    large_seconds: float  # median time of a large body; 0 without any


def large_request(megabytes: float) -> bytes:
    """Return a request to model `large` with a JSON body of this size."""
    row = np.random.default_rng(0).random(FEATURES, np.float32)
    text = json.dumps([round(float(value), 4) for value in row]).replace(" ", "").encode()
    rows = max(1, int(megabytes * 1e6 / (len(text) + 1)))
    body = b'{"instances":[' + b",".join([text] * rows) + b"]}"
    return b"POST /v1/models/large:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(content)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    body = await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(body[:300].decode())


async def send_large(server: Server, content: bytes, taken: list[float]) -> None:
    """Send the large request again and again."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**26)
    try:
        while True:
            began = time.perf_counter()
            await ask(reader, writer, content)
            taken.append(time.perf_counter() - began)
    finally:
        writer.close()


async def single_rows(server: Server, seconds: float, rate: float) -> list[float]:
    """Send single rows at `rate` per second; return the seconds from when each was due to its answer."""
    host, port = server.url.removeprefix("http://").split(":")
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(host, int(port)))
    content, taken = request(Case(1, 1)), list[float]()

    async def one(due: float) -> None:
        connection = await free.get()
        await ask(*connection, content)
        taken.append(time.perf_counter() - due)
        free.put_nowait(connection)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * rate)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(due))
    while not free.empty():
        free.get_nowait()[1].close()
    return taken


async def measure(server: Server, seconds: float, rate: float, large: bytes | None) -> Delays:
    """Measure single rows, with large bodies beside them if `large` is given."""
    large_taken: list[float] = []
    sender = asyncio.create_task(send_large(server, large, large_taken)) if large else None
    # The first body starts a process.
    while sender is not None and not large_taken and not sender.done():
        await asyncio.sleep(0.05)
    large_taken.clear()
    taken = np.array(await single_rows(server, seconds, rate)) * 1000
    if sender is not None:
        sender.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sender
    p50, p99 = np.percentile(taken, [50, 99])
    return Delays(float(p50), float(p99), float(taken.max()), statistics.median(large_taken or [0.0]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=100, help="single rows per second")
    options = parser.parse_args()
    large = large_request(options.megabytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_model(folder / "model.keras")
        with ours(folder, folder / "model.keras", ("m", "large")) as server:
            uvloop.run(until_warm(server))
            rounds = [
                [uvloop.run(measure(server, options.seconds, options.rate, body)) for body in (None, large)]
                for _ in range(options.rounds)
            ]
    alone, beside = ([Delays(*map(statistics.median, zip(*kind, strict=True)))
                      for kind in zip(*rounds, strict=True)])  # fmt: skip
    for label, one in (("alone", alone), (f"beside {options.megabytes:g} MB bodies", beside)):
        times = f"p50 {one.p50_ms:7.2f}  p99 {one.p99_ms:8.2f}  largest {one.largest_ms:8.2f} ms"
        print(f"single rows {label:24s} {times}")
    print(
        f"p99 grows by {beside.p99_ms - alone.p99_ms:.1f} ms; a large body takes {beside.large_seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
