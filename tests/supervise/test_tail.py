"""Log lines: bounded, readable, without secrets."""

import os
from pathlib import Path

import pytest

from workers.supervise import tail
from workers.supervise.masking import Masker
from workers.supervise.tail import LogFile, level_of


@pytest.fixture
def file(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "stderr.log", "stderr", Masker(["hunter22-hunter22"]))


def said(file: LogFile, data: bytes, *, last: bool = False) -> list[str]:
    os.write(file.descriptor, data)
    return [event.line for event in file.new_lines(last=last)]


def test_only_whole_lines_are_told_until_the_end(file: LogFile) -> None:
    assert said(file, b"one\ntw") == ["one"]
    assert said(file, b"o\nrest") == ["two"]
    assert said(file, b"", last=True) == ["rest"]


def test_of_a_progress_bar_its_last_state_is_told_without_colours(file: LogFile) -> None:
    assert said(file, b"10%\r50%\r\x1b[32m100%\x1b[0m\n") == ["100%"]


def test_a_secret_is_masked_even_where_the_line_is_cut(file: LogFile) -> None:
    padding = "x" * (tail.LINE_CHARACTERS - 5)
    [line] = said(file, f"{padding}hunter22-hunter22\n".encode())
    assert "hunter22" not in line
    assert len(line) == len(padding) + 3


def test_a_program_that_never_stops_talking_is_cut_off_with_a_word(
    file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "LINES_EACH_ATTEMPT", 3)
    lines = said(file, b"".join(b"%d\n" % n for n in range(10)))
    assert lines[:3] == ["0", "1", "2"]
    assert len(lines) == 4
    assert "not kept" in lines[3]


def test_a_large_file_that_was_read_starts_anew(file: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "TRUNCATE_ABOVE", 10)
    assert said(file, b"more than ten bytes\n") == ["more than ten bytes"]
    assert said(file, b"again\n") == ["again"]


def test_what_is_said_between_two_attempts_belongs_to_neither(file: LogFile) -> None:
    os.write(file.descriptor, b"between\n")
    file.begin()
    assert said(file, b"mine\n") == ["mine"]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("Epoch 1/5", "info"),
        ("WARNING: slow", "warning"),
        ("W0000 00:00 cpu.cc:1] no AVX", "warning"),
        ("x.py:3: UserWarning: beware", "warning"),
        ("ValueError: no", "error"),
        ("Traceback (most recent call last):", "error"),
    ],
)
def test_the_level_of_a_line_is_guessed(line: str, level: str) -> None:
    assert level_of(line) == level


@pytest.mark.parametrize(
    "line",
    [
        "redis://user:s3cr3tpass@host/0",
        "token ty_abcdefghijklmnopqrst",
        "Authorization: Bearer s3cr3tpass.abc",
        "api_key = 's3cr3tpass'",
    ],
)
def test_whatever_looks_like_a_secret_is_masked(line: str) -> None:
    masked = Masker().mask(line)
    assert "s3cr3t" not in masked
    assert "abcdefghijkl" not in masked
    assert "•••" in masked
