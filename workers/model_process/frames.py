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
# Frames up to this size are sent as one buffer. The kernel divides larger ones in any case, so that the
# receiver may wake up for each part, and copying them takes longer.
_ONE_BUFFER_BYTES = 32 * 2**10
# Frames up to this size are read into one buffer, which is used again.
_REUSED_BYTES = 512 * 2**10
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
    """Return one frame as a buffer list.

    Args:
        header: the operation and its fields; must be JSON.
        tensors: arrays with any shape; non-contiguous or big-endian ones are copied.
    """
    arrays = [np.ascontiguousarray(t, t.dtype.newbyteorder("<")) for t in tensors]
    named = [{"dtype": a.dtype.str, "shape": a.shape} for a in arrays]
    head = orjson.dumps({**header, "tensors": named})
    size = sum(a.nbytes for a in arrays)
    body = [a.reshape(-1).view(np.uint8).data for a in arrays if a.nbytes]
    frame: list[bytes | memoryview] = [PREFIX.pack(len(head), size), head, *body]
    return [b"".join(frame)] if size <= _ONE_BUFFER_BYTES else frame


def lengths(prefix: bytes | bytearray | memoryview, max_body: int = MAX_BODY) -> tuple[int, int]:
    """Return the header's and the body's length.

    Raises:
        InvalidFrame: a length exceeds a frame's maximum.
    """
    head, body = PREFIX.unpack(prefix)
    if head > MAX_HEADER or body > max_body:
        raise InvalidFrame(f"a frame of {head} + {body} bytes")
    return head, body


def decode(head: bytes | memoryview, body: bytes | bytearray | memoryview) -> Frame:
    """Decode a frame; its tensors are views of `body`.

    Raises:
        InvalidFrame: NumPy cannot parse a type's name. Other content raises what reading it does.
    """
    header = orjson.loads(head)
    tensors, offset = [], 0
    for spec in header.pop("tensors"):
        dtype, count = _dtype(spec["dtype"]), math.prod(spec["shape"])
        tensors.append(np.frombuffer(body, dtype, count, offset).reshape(spec["shape"]))
        offset += dtype.itemsize * count
    return Frame(header, tensors)


def _dtype(name: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(name)
    # NumPy evaluates the sizes in a name, such as "(2,3)f4", as a literal of Python.
    except SyntaxError as error:
        raise InvalidFrame("a type that is none") from error
    return dtype


class Decoder:
    """Turns streamed chunks into frames whose bodies have at most `max_body` bytes."""

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self.max_body = max_body
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
            head, body = lengths(memoryview(self._pending)[: PREFIX.size], self.max_body)
            end = PREFIX.size + head + body
            if len(self._pending) < end:
                return
            # Copied, because the tensors are views, and a bytearray with views cannot be resized.
            whole = bytes(memoryview(self._pending)[:end])
            del self._pending[:end]
            middle = PREFIX.size + head
            yield decode(whole[PREFIX.size : middle], memoryview(whole)[middle:])


def _whole(chunk: bytes) -> Frame | None:
    """Return the frame in a chunk that is exactly one, as most are."""
    if len(chunk) < PREFIX.size:
        return None
    head, body = lengths(chunk[: PREFIX.size])
    middle = PREFIX.size + head
    if len(chunk) != middle + body:
        return None
    return decode(chunk[PREFIX.size : middle], memoryview(chunk)[middle:])


class FrameReader:
    """Reads frames from a blocking socket. A frame's tensors are valid until the next one is read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(_REUSED_BYTES))
        # The bytes of the buffer that belong to the next frames.
        self._ahead = memoryview(b"")
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def read(self) -> Frame | None:
        """Wait for the next frame; return None if the peer has closed the connection.

        Raises:
            ConnectionError: the peer closed inside a frame.
            InvalidFrame: the stream contains invalid data.
        """
        buffer, size = self._buffer, len(self._ahead)
        buffer[:size] = self._ahead
        if not size:
            # A process that waits in `recv` also wakes up when the peer reads its last frame.
            self._readable.poll()
            size = self._connection.recv_into(buffer)
            # An end between two frames is regular; inside a frame it is an error.
            if not size:
                return None
        size = self._fill(buffer, size, PREFIX.size)
        head, body = lengths(buffer[: PREFIX.size])
        middle, end = PREFIX.size + head, PREFIX.size + head + body
        frame = buffer
        if end > len(buffer):
            frame = memoryview(bytearray(end))
            frame[:size] = buffer[:size]
        size = self._fill(frame, size, end)
        self._ahead = frame[end:size]
        return decode(frame[PREFIX.size : middle], frame[middle:end])

    def _fill(self, buffer: memoryview, size: int, length: int) -> int:
        """Receive until a buffer has the wanted bytes; return its size."""
        while size < length:
            # One call for all of them, although they may arrive in many parts.
            received = self._connection.recv_into(buffer[size:length], 0, socket.MSG_WAITALL)
            if not received:
                raise ConnectionError("the peer closed inside a frame")
            size += received
        return size


def write_frame(connection: socket.socket, header: dict[str, Any], tensors: Sequence[Array] = ()) -> None:
    """Send one frame; blocks until it is in the kernel's buffer."""
    connection.sendall(b"".join(encode(header, tensors)))
