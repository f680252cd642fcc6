"""The tests of the data layer, leases and races on PostgreSQL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
URL = os.environ.get("TRAINYARD_TEST_POSTGRES_URL", "")
TESTS = (
    "tests/jobs",
    "tests/accounts",
    "tests/fetching/test_fetches.py",
    "tests/code/test_actions.py",
    "tests/code/test_api.py",
    "tests/registry/test_races.py",
    "tests/registry/test_promotions.py",
)


@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not URL, reason="TRAINYARD_TEST_POSTGRES_URL is not set: run through scripts/with-postgres"
)
def test_the_data_layer_holds_on_postgresql_too() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TRAINYARD_TEST_HOME", "TRAINYARD_HOME", "TRAINYARD_TEST_POSTGRES_URL")
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *TESTS, "-q", "-p", "no:cacheprovider", "--color=no"],
        cwd=ROOT,
        env=environment | {"TRAINYARD_DATABASE_URL": URL},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
