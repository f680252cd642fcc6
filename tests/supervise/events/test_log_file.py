"""Log lines: bounded, readable, without secrets."""

import os
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from workers.runner.event_reporter import EventReporter
from workers.supervise.events import log_file
from workers.supervise.events.log_file import LogFile, level_of
from workers.system.secret_masking import SecretMasker


@pytest.fixture
def file(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "stderr.log", "stderr", SecretMasker(["hunter22-hunter22"]))


def new_lines(file: LogFile, data: bytes, *, last: bool = False) -> list[str]:
    os.write(file.descriptor, data)
    return [event.line for event in file.new_lines(last=last)]


def test_only_whole_lines_are_returned_until_the_end(file: LogFile) -> None:
    assert new_lines(file, b"one\ntw") == ["one"]
    assert new_lines(file, b"o\nrest") == ["two"]
    assert new_lines(file, b"", last=True) == ["rest"]


def test_lines_belong_to_the_trial_that_printed_them_although_they_are_read_later(
    file: LogFile, capfd: pytest.CaptureFixture[str]
) -> None:
    events = Mock()
    sys.stdout.write("loading\n")
    for number in (1, 2):
        EventReporter(events, Mock(), "", number).trial_started()
        sys.stdout.write(f"first of {number}\nlast of {number}")
    sys.stdout.flush()
    os.write(file.descriptor, capfd.readouterr().out.encode())
    assert [(event.trial, event.line) for event in file.new_lines(last=True)] == [
        (None, "loading"),
        (1, "first of 1"),
        (1, "last of 1"),
        (2, "first of 2"),
        (2, "last of 2"),
    ]
    file.start_attempt()
    os.write(file.descriptor, b"another attempt\n")
    assert [event.trial for event in file.new_lines()] == [None]


def test_a_progress_bar_yields_its_last_state_without_colours(file: LogFile) -> None:
    assert new_lines(file, b"10%\r50%\r\x1b[32m100%\x1b[0m\n") == ["100%"]


def test_a_secret_is_masked_even_where_the_line_is_cut(file: LogFile) -> None:
    padding = "x" * (log_file.MAX_LINE_CHARACTERS - 5)
    [line] = new_lines(file, f"{padding}hunter22-hunter22\n".encode())
    assert "hunter22" not in line
    assert len(line) == len(padding) + 3


def test_lines_beyond_the_limit_are_dropped_with_a_warning(
    file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "MAX_LINES_PER_ATTEMPT", 3)
    lines = new_lines(file, b"".join(b"%d\n" % n for n in range(10)))
    assert lines[:3] == ["0", "1", "2"]
    assert len(lines) == 4
    assert "dropped" in lines[3]


def test_a_large_file_is_truncated_once_it_was_read(file: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "TRUNCATE_ABOVE", 10)
    assert new_lines(file, b"more than ten bytes\n") == ["more than ten bytes"]
    assert new_lines(file, b"again\n") == ["again"]


def test_output_that_is_printed_much_faster_than_it_is_read_is_left_out_with_a_warning(
    file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "MOST_UNREAD", 8)
    os.write(file.descriptor, b"first\n")
    assert [event.line for event in file.new_lines()] == ["first"]
    os.write(file.descriptor, b"lost, " * 100 + b"\nlast\n")
    lines = list(file.new_lines())
    assert lines[0].level == "warning"
    assert "598 bytes were printed too fast" in lines[0].line
    assert lines[-1].line == "last"
    # A file can be extended without a byte of disk.
    os.ftruncate(file.descriptor, 2**40)
    began = time.monotonic()
    assert len(list(file.new_lines(last=True))) == 2
    assert time.monotonic() - began < 5
    assert file.printed == 2**40


def test_lines_printed_between_two_attempts_are_discarded(file: LogFile) -> None:
    os.write(file.descriptor, b"between\n")
    file.start_attempt()
    assert new_lines(file, b"mine\n") == ["mine"]


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
def test_values_that_look_like_secrets_are_masked(line: str) -> None:
    masked = SecretMasker().mask(line)
    assert "s3cr3t" not in masked
    assert "abcdefghijkl" not in masked
    assert "•••" in masked
