"""Encodes and decodes frames between router and model child: a JSON header, then raw little-endian tensors.

A frame is `<I header bytes> <Q body bytes> <header> <body>`. The header's `tensors` lists dtype and
shape of each tensor in the body, in order. The other fields depend on the operation.
"""

import math
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

PREFIX = struct.Struct("<IQ")
# A damaged stream must not make the receiver wait for, or allocate, an absurd number of bytes.
MAX_HEADER = 1 << 20
MAX_BODY = 1 << 31
# A child sends a frame at least this often, so a router that receives none knows that it is stopped.
BEAT_SECONDS = 0.25

Array = npt.NDArray[Any]


class Frame(NamedTuple):
    """One message and its tensors (read-only views of the received bytes)."""

    header: dict[str, Any]
    tensors: list[Array]


class InvalidFrame(Exception):
    """The peer sent invalid data; the connection cannot be used any more."""


def encode(header: dict[str, Any], tensors: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """Return one frame as a list of buffers.

    Args:
        header: the operation and its fields; must be JSON.
        tensors: arrays of any shape; non-contiguous or big-endian ones are copied.
    """
    arrays = [np.ascontiguousarray(t, t.dtype.newbyteorder("<")) for t in tensors]
    named = [{"dtype": a.dtype.str, "shape": a.shape} for a in arrays]
    head = orjson.dumps({**header, "tensors": named})
    size = sum(a.nbytes for a in arrays)
    body = [a.reshape(-1).view(np.uint8).data for a in arrays if a.nbytes]
    return [PREFIX.pack(len(head), size) + head, *body]


def lengths(prefix: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Return the header's and the body's length.

    Raises:
        InvalidFrame: a length exceeds the maximum of a frame.
    """
    head, body = PREFIX.unpack(prefix)
    if head > MAX_HEADER or body > MAX_BODY:
        raise InvalidFrame(f"a frame of {head} + {body} bytes")
    return head, body


def decode(head: bytes | memoryview, body: bytes | bytearray | memoryview) -> Frame:
    """Decode a frame; its tensors are views of `body`."""
    header = orjson.loads(head)
    tensors, offset = [], 0
    for spec in header.pop("tensors"):
        dtype, count = np.dtype(spec["dtype"]), math.prod(spec["shape"])
        tensors.append(np.frombuffer(body, dtype, count, offset).reshape(spec["shape"]))
        offset += dtype.itemsize * count
    return Frame(header, tensors)


class Decoder:
    """Turns a stream of chunks into frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield every frame that `chunk` completes.

        Raises:
            InvalidFrame: the stream contains invalid data.
        """
        self._pending += chunk
        while len(self._pending) >= PREFIX.size:
            head, body = lengths(memoryview(self._pending)[: PREFIX.size])
            end = PREFIX.size + head + body
            if len(self._pending) < end:
                return
            # Copied, because the tensors are views, and a bytearray with views cannot be resized.
            whole = bytes(memoryview(self._pending)[:end])
            del self._pending[:end]
            middle = PREFIX.size + head
            yield decode(whole[PREFIX.size : middle], memoryview(whole)[middle:])


def read_frame(connection: socket.socket) -> Frame | None:
    """Wait for the next frame; return None if the peer has closed the connection.

    Raises:
        ConnectionError: the peer closed inside a frame.
        InvalidFrame: the stream contains invalid data.
    """
    prefix = bytearray(PREFIX.size)
    first = connection.recv_into(prefix)
    # An end between two frames is regular; inside a frame it is an error.
    if first == 0:
        return None
    _fill(connection, memoryview(prefix)[first:])
    head, body = lengths(prefix)
    rest = memoryview(bytearray(head + body))
    _fill(connection, rest)
    return decode(rest[:head], rest[head:])


def write_frame(connection: socket.socket, header: dict[str, Any], tensors: Sequence[Array] = ()) -> None:
    """Send one frame; blocks until it is in the kernel's buffer."""
    connection.sendall(b"".join(encode(header, tensors)))


def _fill(connection: socket.socket, into: memoryview) -> None:
    while into:
        received = connection.recv_into(into)
        if received == 0:
            raise ConnectionError("the peer closed inside a frame")
        into = into[received:]
