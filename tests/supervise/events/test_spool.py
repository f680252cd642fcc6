"""The spool and the line splitter."""

import os
from pathlib import Path

import pytest

from workers.supervise.events import spool as module
from workers.supervise.events.spool import BATCH_BYTES, Spool
from workers.system.line_splitter import LineSplitter


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool.jsonl")


def test_appended_lines_are_read_back_from_any_position(spool: Spool) -> None:
    spool.append(b"one")
    position = spool.size
    spool.append(b"two")
    assert spool.read(0).lines == (b"one", b"two")
    assert spool.read(position) == ((b"two",), spool.size)


def test_recorded_lines_are_removed_from_the_disk_and_positions_stay(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DISCARD_BYTES", 1000)
    read, largest = b"", 0
    position = 0
    for number in range(2000):
        spool.append(b"%06d" % number)
        if number % 3 == 2:  # one line stays behind
            batch = spool.read(position)
            read += b"".join(batch.lines)
            position = batch.end
            spool.append(b"x" * 6)
            spool.discard(position)
            spool.sync()
        largest = max(largest, (tmp_path / "spool.jsonl").stat().st_size)
    assert read.replace(b"x" * 6, b"") == b"".join(b"%06d" % number for number in range(1998))
    assert (spool.size, spool.dirty) == (7 * (2000 + 666), True)
    assert largest < 1100
    assert spool.read(position).lines == (b"x" * 6, b"001998", b"001999")


def test_lines_that_are_not_recorded_stay_on_the_disk(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCARD_BYTES", 1000)
    for _ in range(1000):
        spool.append(b"y" * 9)
    spool.discard(5000)
    assert spool.read(0).lines[0] == b"y" * 9
    spool.discard(9800)
    assert (spool.read(9800).lines, spool.size) == ((b"y" * 9,) * 20, 10_000)


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
