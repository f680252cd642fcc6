"""Wrong passwords through the proxy of Compose lock out no other address."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ops.conftest import ROOT
from tests.ops.installation import compose
from tests.ops.installation.compose import PASSWORDS
from tests.ops.installation.proxied_logins import NAME, PASSWORD, WRONG

GATEWAY, CONTAINER = "172.30.57.1", "172.30.57.9"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux" or shutil.which("ip") is None,
    reason="needs root on Linux, for a network of its own",
)


@pytest.mark.timeout(600)
def test_wrong_passwords_from_one_address_outside_lock_out_no_other_one(
    tmp_path: Path, migrated: Path | None
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    if migrated is not None:
        shutil.copy(migrated, home / "trainyard.sqlite3")
    own = {
        "TRAINYARD_DATABASE_URL": f"sqlite:///{home}/trainyard.sqlite3",
        "TRAINYARD_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    web = compose.load("docker-compose.yml", variables=PASSWORDS | own)["services"]["web"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    environment = inherited | web["environment"] | {"TRAINYARD_HOME": str(home)}
    environment["DJANGO_SETTINGS_MODULE"] = "webapp.settings.main"
    command = [sys.executable, *web["command"][1:]]
    code = f"from jobs.models import User; User.objects.create_user({NAME!r}, password={PASSWORD!r})"
    for arguments in (["migrate", "--verbosity=0"], ["shell", "--no-imports", "-c", code]):
        made = [sys.executable, "manage.py", *arguments]
        subprocess.run(made, cwd=ROOT, env=environment, check=True)
    port = command[command.index("--port") + 1]
    database = str(home / "trainyard.sqlite3")
    module = [sys.executable, "-m", "tests.ops.installation.proxied_logins"]
    done = subprocess.run(
        ["unshare", "--net", *module, GATEWAY, CONTAINER, port, database, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    # A page with an error each time, then the refusal of the address.
    assert answers["outside"] == [200] * (WRONG + 1)
    assert answers["same"] == 429
    assert answers["other"] == 302
    # Another container claims a new address each time: its own one is counted.
    assert answers["forged"][-1] == 429
