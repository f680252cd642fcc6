"""The scripts' stores and computations, under Node. `page.js` replaces the browser."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
NODE = shutil.which("node")
IS_REQUIRED = os.environ.get("TRAINYARD_REQUIRE_NODE") == "1"


@pytest.mark.skipif(
    not (NODE or IS_REQUIRED), reason="no Node on PATH (TRAINYARD_REQUIRE_NODE=1 forbids this)"
)
@pytest.mark.parametrize(
    "file", sorted(FOLDER.glob("*.test.js")), ids=lambda file: file.name.partition(".")[0]
)
def test_the_scripts_pass_their_own_tests(file: Path) -> None:
    assert NODE, "TRAINYARD_REQUIRE_NODE=1, but there is no Node on PATH"
    done = subprocess.run([NODE, file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
