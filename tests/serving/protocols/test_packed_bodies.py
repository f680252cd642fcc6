"""Compressed request bodies."""

import contextlib
import gzip
import json
import random
import tracemalloc
import zlib

import pytest

from workers.model_process.errors import BadRequest, BodyTooLarge, UnsupportedEncoding
from workers.serving.bodies.packed import PackedBody, coding_of

TEXT = json.dumps({"instances": [[1, 2, 3, 4]] * 10}).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
    ids=["gzip", "gzip in parts", "deflate", "deflate without its header"],
)
def test_bodies_are_unpacked_up_to_their_limit(coding: str, packed: bytes) -> None:
    assert PackedBody(packed, coding, len(TEXT)).unpack() == TEXT
    with pytest.raises(BodyTooLarge, match=f"more than the limit of {len(TEXT) - 1} bytes"):
        PackedBody(packed, coding, len(TEXT) - 1).unpack()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_damaged_bodies_are_bad_requests(coding: str) -> None:
    good = gzip.compress(TEXT) if coding == "gzip" else zlib.compress(TEXT)
    for damaged in (good[:-1], good[:5], good + b"rest", TEXT, good[:20] + b"\xff" * 10 + good[30:]):
        with pytest.raises(BadRequest, match=coding):
            PackedBody(damaged, coding, 10_000).unpack()


def test_random_bytes_are_never_another_error() -> None:
    chance = random.Random(0)
    for _ in range(300):
        start = chance.choice([b"", b"\x1f\x8b\x08", b"\x78\x9c"])
        body = PackedBody(start + chance.randbytes(30), chance.choice(["gzip", "deflate"]), 10_000)
        with contextlib.suppress(BadRequest, BodyTooLarge):
            body.unpack()


def test_a_bomb_is_refused_in_bounded_memory() -> None:
    bomb = gzip.compress(bytes(40 * 2**20), 1)
    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        PackedBody(bomb, "gzip", 2**20).unpack()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(bomb) + 8 * 2**20


def test_a_body_of_many_empty_parts_is_refused() -> None:
    with pytest.raises(BadRequest, match="more than 16 gzip parts"):
        PackedBody(gzip.compress(b"") * 10_000, "gzip", 2**20).unpack()


def test_codings_are_named_as_in_http() -> None:
    assert [coding_of(name) for name in (b"gzip", b"GZIP ", b"x-gzip", b"deflate", b"identity", b"")] == [
        "gzip", "gzip", "gzip", "deflate", None, None,
    ]  # fmt: skip
    for unknown in (b"br", b"gzip, gzip", b"\xff"):
        with pytest.raises(UnsupportedEncoding, match="send gzip, deflate or a plain body"):
            coding_of(unknown)
