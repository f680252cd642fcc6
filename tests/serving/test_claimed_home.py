"""Two prediction servers of one home have folders, numbers and names of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from workers.serving import claimed_home
from workers.serving.claimed_home import claim_home

CLAIM = """
import sys
from pathlib import Path
from workers.serving.claimed_home import claim_home
claimed = claim_home(Path(sys.argv[1]))
print(claimed.instance, claimed.folder.name, claimed.own_name(Path("run/serving.json")), flush=True)
sys.stdin.read()
"""


def claim(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(home)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def claimed_by(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_each_server_of_a_home_has_a_folder_that_a_killed_one_leaves_to_the_next(tmp_path: Path) -> None:
    home = tmp_path / "serving"
    first, second = claim(home), claim(home)
    try:
        claims = {claimed_by(first): first, claimed_by(second): second}
        assert set(claims) == {"1 serving run/serving.json", "2 serving-2 run/serving-2.json"}
        claims["1 serving run/serving.json"].kill()
        claims["1 serving run/serving.json"].wait()
        third = claim(home)
        assert claimed_by(third) == "1 serving run/serving.json"
        third.kill()
        third.wait()
    finally:
        for process in (first, second):
            process.kill()
            process.wait()


def test_there_is_an_end_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimed_home, "MAX_SERVERS", 0)
    with pytest.raises(OSError, match="0 prediction servers use the home"):
        claim_home(tmp_path)
