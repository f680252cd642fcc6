"""The spool and the line splitter."""

import os
from pathlib import Path

import pytest

from workers.supervise.line_splitter import LineSplitter
from workers.supervise.spool import BATCH_BYTES, Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool.jsonl")


def test_appended_lines_are_read_back_from_any_position(spool: Spool) -> None:
    spool.append(b"one")
    position = spool.size
    spool.append(b"two")
    assert spool.read(0).lines == (b"one", b"two")
    assert spool.read(position) == ((b"two",), spool.size)


def test_a_batch_ends_at_a_whole_line(spool: Spool) -> None:
    line = b"x" * 1000
    for _ in range(BATCH_BYTES // 500):
        spool.append(line)
    first = spool.read(0)
    assert set(first.lines) == {line}
    assert first.end < spool.size
    assert len(first.lines) + len(spool.read(first.end).lines) <= BATCH_BYTES // 500


def test_a_line_longer_than_a_batch_is_read_whole(spool: Spool) -> None:
    spool.append(b"x" * (2 * BATCH_BYTES))
    spool.append(b"y")
    assert len(spool.read(0).lines[0]) == 2 * BATCH_BYTES


def test_a_partial_line_on_a_full_disk_is_overwritten(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append(b"whole")
    size = spool.size
    real = os.pwrite

    def half(descriptor: int, data: bytes, position: int) -> int:
        real(descriptor, data[:2], position)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "pwrite", half)
        spool.append(b"broken")
    assert spool.size == size
    spool.append(b"after")
    assert spool.read(0).lines == (b"whole", b"after")


def test_unsynced_lines_make_the_spool_dirty(spool: Spool) -> None:
    spool.append(b"one")
    assert spool.dirty
    spool.sync()
    assert not spool.dirty


def test_lines_are_split_from_any_chunks_and_cut_to_the_limit() -> None:
    splitter = LineSplitter(limit=8)
    assert splitter.feed(b"ab") == []
    assert splitter.feed(b"c\nde\nf") == [b"abc", b"de"]
    assert splitter.feed(b"0123456789") == []
    assert splitter.feed(b"0123456789\nnext\n") == [b"f0123456", b"next"]
