"""A fake model process: each row is a path or a port, and its prediction is whether it can be reached.

It imports nothing but the standard library: the Python that every user can run may have no more.
"""

import argparse
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tests.supervise.fake_runner import can_read, connects

PREFIX = struct.Struct("<IQ")
EXIT = "exit"
SIGNATURE = {
    "inputs": [{"name": "place", "dtype": "uint8", "shape": [None]}],
    "outputs": [{"name": "is_reachable", "dtype": "float32", "shape": []}],
}


def frames(stream: IO[bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    while prefix := stream.read(PREFIX.size):
        head, body = PREFIX.unpack(prefix)
        yield json.loads(stream.read(head)), stream.read(body)


def send(connection: socket.socket, body: bytes = b"", **header: Any) -> None:
    head = json.dumps({"tensors": [], **header}).encode()
    connection.sendall(PREFIX.pack(len(head), len(body)) + head + body)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int)
    parser.add_argument("--code", type=Path)
    parser.add_argument("--max-batch", type=int)
    arguments = parser.parse_args()
    connection = socket.socket(fileno=arguments.socket)
    for header, body in frames(connection.makefile("rb")):
        if header["op"] == "load":
            code = sorted(file.name for file in arguments.code.rglob("*.py"))
            sys.stdout.write(json.dumps([Path(header["model"]).read_text(), code]) + "\n")
            send(connection, op="ready", id=header["id"], signature=SIGNATURE)
            continue
        text = body.decode()
        if text == EXIT:
            # A line without an end counts, too.
            sys.stdout.write("bye")
            sys.stdout.flush()
            os._exit(3)
        answer = connects(int(text)) if text.isdecimal() else can_read(Path(text))
        tensors = [{"dtype": "<f4", "shape": [1]}]
        send(connection, struct.pack("<f", answer), op="outputs", id=header["id"], tensors=tensors)


if __name__ == "__main__":
    main()
