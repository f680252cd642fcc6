"""Executes docs/walkthrough-curl.md block by block."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.flow.yard import RunningYard
from tests.ops.conftest import ROOT

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]


def test_the_walkthrough_holds(flow_installation: RunningYard, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "walkthrough-curl.md").read_text()
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    tokens = {"ADA": flow_installation.tokens["ada"], "GRACE": flow_installation.tokens["grace"]}
    places = {"TY": f"{flow_installation.urls['web']}/api/v1", "SERVING": flow_installation.urls["serving"]}
    done = subprocess.run(
        ["bash", "-eu", "-x", "-c", script],
        cwd=tmp_path,
        env=flow_installation.environment | tokens | places,
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    (job,) = flow_installation.ada.get("/jobs", project="walk", kind="search")["items"]
    steps = flow_installation.job(job["id"])["steps"]
    assert {step["kind"] for step in steps} == {"search", "train", "ensemble", "quantize", "register"}
    assert {step["state"] for step in steps} == {"completed"}
    served, answers = flow_installation.predict("leaves", [[0.1, 3.1], [2.1, 1.2]])
    assert served == 1
    assert [sum(row) for row in answers] == pytest.approx([1, 1], abs=1e-4)
