"""A wrong setting ends each command with one sentence that names the variable, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

PASSWORD = "not-for-logs"
CASES = [
    (
        "scheduler",
        "TRAINYARD_DATABASE_URL",
        f"mysql://u:{PASSWORD}@h/x",
        "give sqlite:///path or postgres://",
    ),
    ("up", "TRAINYARD_DATABASE_URL", f"postgres://u:{PASSWORD}@h:port/x", "TRAINYARD_DATABASE_URL"),
    (
        "worker",
        "TRAINYARD_DATABASE_URL",
        "sqlite:///no/such/folder/db",
        "there is no folder '/no/such/folder'",
    ),
    ("adduser ada", "TRAINYARD_DATABASE_URL", f"postgres://u:{PASSWORD}@127.0.0.1:9/x", "does not answer"),
    ("scheduler", "TRAINYARD_REDIS_URL", f"http://:{PASSWORD}@h", "give redis://host:6379/0"),
    ("web", "TRAINYARD_PUBLIC_URL", "https://h:99999", "TRAINYARD_PUBLIC_URL"),
    ("scheduler", "TRAINYARD_LOG_JSON", "yes", "TRAINYARD_LOG_JSON='yes': give 1 or 0"),
    ("web", "TRAINYARD_ACCESS_LOG", "2", "TRAINYARD_ACCESS_LOG='2': give a share from 0 to 1"),
    ("scheduler", "TRAINYARD_STATUS_ADDRESS", "9100", "'9100' is no address: give HOST:PORT"),
    ("serve --dashboard nowhere", "TRAINYARD_HOME", "", "'nowhere' is no address of a dashboard"),
    ("worker", "TRAINYARD_CHECKPOINT_SECONDS", "x", "TRAINYARD_CHECKPOINT_SECONDS='x': give a number"),
    ("worker", "TRAINYARD_LIMIT_FILE_GIB", "x", "TRAINYARD_LIMIT_FILE_GIB='x': give a number above 0"),
    ("serve", "TRAINYARD_SERVING_MAX_CONNECTIONS", "x", "[TRAINYARD_SERVING_MAX_CONNECTIONS]"),
    ("serve", "TRAINYARD_SERVING_TRUSTED_PROXIES", "zz", "TRAINYARD_SERVING_TRUSTED_PROXIES: 'zz' is no"),
    ("serve --port 70000", "TRAINYARD_HOME", "", "ports go from 0 to 65535"),
    ("scheduler", "TRAINYARD_ARTIFACTS", "/proc/none", "TRAINYARD_ARTIFACTS: the folder /proc/none"),
    ("worker", "TRAINYARD_ARTIFACTS", "nosuch://bucket", "'nosuch' is no protocol of a store"),
    ("web", "TRAINYARD_HOME", "/etc/passwd", "TRAINYARD_HOME: /etc/passwd cannot be used"),
    ("scheduler", "TRAINYARD_SECRET_KEY_FILE", "/proc/none/key", "TRAINYARD_SECRET_KEY_FILE: /proc/none/key"),
    ("worker", "TRAINYARD_NODE_POLL", "-1", "TRAINYARD_NODE_POLL='-1': give a number of seconds"),
    (
        "worker",
        "TRAINYARD_COMPILE_CACHE_BYTES",
        "x",
        "TRAINYARD_COMPILE_CACHE_BYTES='x': give a number of bytes",
    ),
    (
        "worker",
        "TRAINYARD_ENVIRONMENTS_BYTES",
        "x",
        "TRAINYARD_ENVIRONMENTS_BYTES='x': give a number of bytes",
    ),
]


def start(home: Path, command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAINYARD_")}
    environment |= {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"}
    return subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        cwd=ROOT,
        env=environment | {name: text for name, text in variables.items() if text},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("command", "variable", "value", "sentence"), CASES)
def test_a_wrong_setting_is_one_sentence(
    command: str, variable: str, value: str, sentence: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    ended = start(home, command, **{variable: value})
    written = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert sentence in written
    assert "Traceback" not in written
    assert PASSWORD not in written


def test_in_json_logs_the_sentence_is_a_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    ended = start(tmp_path, "scheduler", TRAINYARD_LOG_JSON="1", TRAINYARD_REDIS_URL="http://x")
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["part"] for line in lines] == ["scheduler"]
    assert "TRAINYARD_REDIS_URL" in lines[0]["event"]
