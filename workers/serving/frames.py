"""Encodes and decodes frames between router and model child: a JSON header, then raw little-endian tensors.

A frame is `<I header bytes> <Q body bytes> <header> <body>`. The header's `tensors` lists dtype and
shape of each tensor in the body, in order. The other fields depend on the operation.
"""

import math
import select
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
# Frames up to this size are sent as one buffer: the receiver of several may wake up for each.
_ONE_BUFFER_BYTES = 256 * 2**10
_CHUNK_BYTES = 64 * 2**10
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
    frame: list[bytes | memoryview] = [PREFIX.pack(len(head), size), head, *body]
    return [b"".join(frame)] if size <= _ONE_BUFFER_BYTES else frame


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
        if not self._pending and (frame := _whole(chunk)) is not None:
            yield frame
            return
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


def _whole(chunk: bytes) -> Frame | None:
    """Return the frame of a chunk that is exactly one, as most are."""
    if len(chunk) < PREFIX.size:
        return None
    head, body = lengths(chunk[: PREFIX.size])
    middle = PREFIX.size + head
    if len(chunk) != middle + body:
        return None
    return decode(chunk[PREFIX.size : middle], memoryview(chunk)[middle:])


class FrameReader:
    """Reads frames from a blocking socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._ahead = b""
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def read(self) -> Frame | None:
        """Wait for the next frame; return None if the peer has closed the connection.

        Raises:
            ConnectionError: the peer closed inside a frame.
            InvalidFrame: the stream contains invalid data.
        """
        chunk: bytes | bytearray = self._ahead or self._next_chunk()
        # An end between two frames is regular; inside a frame it is an error.
        if not chunk:
            return None
        if len(chunk) < PREFIX.size:
            chunk = _filled(self._connection, chunk, PREFIX.size)
        head, body = lengths(chunk[: PREFIX.size])
        middle, end = PREFIX.size + head, PREFIX.size + head + body
        self._ahead = bytes(chunk[end:])
        frame = memoryview(chunk if len(chunk) >= end else _filled(self._connection, chunk, end))
        return decode(frame[PREFIX.size : middle], frame[middle:])

    def _next_chunk(self) -> bytes:
        """Wait for the next bytes. Most frames arrive in one chunk."""
        # A process that waits in `recv` also wakes up when the peer reads its last frame.
        self._readable.poll()
        return self._connection.recv(_CHUNK_BYTES)


def write_frame(connection: socket.socket, header: dict[str, Any], tensors: Sequence[Array] = ()) -> None:
    """Send one frame; blocks until it is in the kernel's buffer."""
    connection.sendall(b"".join(encode(header, tensors)))


def _filled(connection: socket.socket, begin: bytes | bytearray, size: int) -> bytearray:
    """Return `begin` with the bytes that follow it, `size` in all."""
    whole = bytearray(size)
    whole[: len(begin)] = begin
    rest = memoryview(whole)[len(begin) :]
    while rest:
        received = connection.recv_into(rest)
        if received == 0:
            raise ConnectionError("the peer closed inside a frame")
        rest = rest[received:]
    return whole
