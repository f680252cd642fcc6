"""Frames are decoded from chunks, whatever their size."""

import socket
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.model_process.frames import (
    PREFIX,
    Decoder,
    FrameReader,
    InvalidFrame,
    encode,
    write_frame,
)

TENSORS = [
    np.array([[1, 2], [3, 4]], np.float32),
    np.zeros((0, 3), "int64"),
    np.array(True),
    np.arange(6).reshape(2, 3).T,
]


def stream() -> bytes:
    return b"".join(encode({"id": 1}, TENSORS)) + b"".join(encode({"id": 2}))


@settings(deadline=None)
@given(st.lists(st.integers(0, len(stream())), max_size=6))
def test_a_stream_split_anywhere_gives_the_same_frames(cuts: list[int]) -> None:
    whole, decoder = stream(), Decoder()
    edges = [0, *sorted(cuts), len(whole)]
    chunks = [whole[a:b] for a, b in pairwise(edges)]
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    assert [frame.header for frame in frames] == [{"id": 1}, {"id": 2}]
    for sent, received in zip(TENSORS, frames[0].tensors, strict=True):
        assert received.dtype == sent.dtype
        np.testing.assert_array_equal(received, sent)


def test_big_endian_arrays_are_converted() -> None:
    (frame,) = Decoder().feed(b"".join(encode({}, [np.array([1, 2], ">i4")])))
    np.testing.assert_array_equal(frame.tensors[0], [1, 2])


def test_a_length_beyond_the_maximum_is_refused() -> None:
    with pytest.raises(InvalidFrame):
        list(Decoder().feed(PREFIX.pack(1, 1 << 40)))


def test_a_type_that_numpy_cannot_parse_is_refused() -> None:
    head = b'{"tensors": [{"dtype": "(,,)f4", "shape": [1]}]}'
    with pytest.raises(InvalidFrame):
        list(Decoder().feed(PREFIX.pack(len(head), 0) + head))


def test_a_frame_is_sent_and_received_over_blocking_sockets() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=write_frame, args=(theirs, {"id": 1}, [np.zeros(1_000_000)]))
        writer.start()
        reader = FrameReader(ours)
        frame = reader.read()
        writer.join()
        theirs.close()
        assert frame is not None
        assert frame.tensors[0].shape == (1_000_000,)
        assert reader.read() is None


def test_a_peer_that_dies_inside_a_frame_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(stream()[:20])
        theirs.close()
        with pytest.raises(ConnectionError):
            FrameReader(ours).read()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, len(stream())), max_size=4))
def test_a_blocking_reader_reads_frames_that_arrive_in_any_parts(cuts: list[int]) -> None:
    whole = stream()
    ours, theirs = socket.socketpair()

    def send() -> None:
        for begin, end in pairwise([0, *sorted(cuts), len(whole)]):
            theirs.sendall(whole[begin:end])
        theirs.close()

    with ours:
        writer = threading.Thread(target=send)
        writer.start()
        reader = FrameReader(ours)
        frames = [reader.read(), reader.read()]
        assert [frame.header for frame in frames if frame is not None] == [{"id": 1}, {"id": 2}]
        assert reader.read() is None
        writer.join()


def test_a_small_frame_is_one_buffer_and_the_tensors_of_a_larger_one_are_not_copied() -> None:
    assert len(encode({"id": 1}, [np.zeros((1, 784), "float32")])) == 1
    large = np.zeros((32, 784), "float32")
    assert np.shares_memory(np.frombuffer(encode({"id": 1}, [large])[-1], "float32"), large)


def test_a_frame_larger_than_the_buffer_is_read_between_others() -> None:
    ours, theirs = socket.socketpair()
    sizes = [3, 200_000, 3, 3]

    def send() -> None:
        for size in sizes:
            write_frame(theirs, {"size": size}, [np.arange(size)])

    with ours, theirs:
        writer = threading.Thread(target=send)
        writer.start()
        reader = FrameReader(ours)
        for size in sizes:
            frame = reader.read()
            assert frame is not None
            assert frame.header == {"size": size}
            np.testing.assert_array_equal(frame.tensors[0], np.arange(size))
        writer.join()
