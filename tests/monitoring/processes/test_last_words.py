"""The last sentence of a part is a line of its log, however the part ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT

TRIES = 5
BEGIN = "import os, subprocess, sys; from jobs.logs import foreign_output; foreign_output.capture('web')\n"
ENDS = {
    "a write of a library": "os.write(2, b'the last sentence\\n')",
    "text without an end of line": "os.write(2, b'the last sentence')",
    "text in the buffer of standard output": "print('the last sentence')",
    "an exit with a sentence": "sys.exit('the last sentence')",
    "a child that lives longer": "subprocess.Popen(['sleep', '3']); os.write(1, b'the last sentence\\n')",
    "an exit without the interpreter's end": (
        "os.write(2, b'the last sentence\\n'); foreign_output.end_capture(); os._exit(1)"
    ),
}


def run(words: list[str], **variables: str) -> list[dict[str, Any]]:
    """Return the lines of the log of a process that writes to a pipe."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAINYARD_")}
    environment |= {"DJANGO_SETTINGS_MODULE": "webapp.settings.main", "TRAINYARD_LOG_JSON": "1"}
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_nothing_captured_is_lost_at_the_end(end: str) -> None:
    for _ in range(TRIES):
        assert [line["event"] for line in run(["-c", BEGIN + end])] == ["the last sentence"]


def test_a_reader_that_reads_nothing_does_not_keep_a_part_from_its_end() -> None:
    code = (
        f"{BEGIN}foreign_output._DRAIN_SECONDS = 0.5\n"
        "for _ in range(2): os.write(2, b'x' * 40_000 + b'\\n')\n"
        "foreign_output.end_capture(); os._exit(3)"
    )
    environment = os.environ | {"TRAINYARD_LOG_JSON": "1"}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while os.write(writing, b"\n" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writing, True)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT, env=environment, stdout=writing, stderr=writing, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)
    assert ended.returncode == 3


def test_the_sentence_that_ends_a_scheduler_is_never_lost(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for _ in range(3):
        lines = run(["manage.py", "scheduler", "--status-address", "8.8.8.8:1"], TRAINYARD_HOME=str(tmp_path))
        assert "8.8.8.8" in lines[-1]["event"]


@pytest.mark.parametrize(
    ("command", "variables", "words"),
    [
        ("scheduler --status-address 8.8.8.8:1", {}, "8.8.8.8"),
        ("scheduler --unknown", {}, "unrecognized arguments: --unknown"),
        ("scheduler", {"TRAINYARD_HOM": "x"}, "TRAINYARD_HOM is no variable"),
        ("scheduler", {"TRAINYARD_REDIS_URL": "http://h"}, "TRAINYARD_REDIS_URL"),
        ("web --port 99999", {}, "Cannot listen on 127.0.0.1, port 99999"),
        ("serve --port 99999", {}, "TRAINYARD_SERVING_PORT"),
        ("worker", {"TRAINYARD_HOM": "x"}, "TRAINYARD_HOM is no variable"),
        ("worker", {"TRAINYARD_NODE_GRACE": "abc"}, "TRAINYARD_NODE_GRACE='abc': give a number of seconds"),
        ("worker --slots 0", {}, "'0' is not a number of slots"),
        ("broker", {"TRAINYARD_BROKER": "none"}, "TRAINYARD_BROKER is 'none'"),
    ],
)
def test_the_sentence_that_ends_a_part_is_one_line_with_the_level_of_errors(
    command: str, variables: dict[str, str], words: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    lines = run(["manage.py", *command.split()], **{"TRAINYARD_HOME": str(tmp_path), **variables})
    part = command.split()[0].replace("serve", "serving")
    assert [(line["level"], line["part"]) for line in lines] == [("error", part)]
    assert words in lines[0]["event"]


def test_each_line_of_the_broker_is_json_and_its_last_ones_too(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAINYARD_")}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "broker"],
        cwd=ROOT,
        env=environment | {"TRAINYARD_HOME": str(tmp_path), "TRAINYARD_LOG_JSON": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    process.terminate()
    lines = [json.loads(line) for line in (first, *process.stdout)]
    assert process.wait(60) == 0
    assert {line["part"] for line in lines} == {"broker"}
    assert "bye bye" in lines[-1]["event"]
