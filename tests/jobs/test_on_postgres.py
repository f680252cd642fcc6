"""The tests of the data layer, leases and races on PostgreSQL.

Left out are files about pages, forms, passwords and computations with rows that were read: nothing in them
depends on the database.
"""

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
OPTIONS = ("-q", "-p", "no:cacheprovider", "--color=no")
LEFT_OUT = (
    "tests/accounts/test_admin_pages.py",
    "tests/accounts/test_hashing.py",
    "tests/accounts/test_project_pages.py",
    "tests/accounts/test_second_factor.py",
    "tests/accounts/test_session.py",
    "tests/jobs/test_answer.py",
    "tests/jobs/test_find_model.py",
    "tests/jobs/test_kinds.py",
    "tests/jobs/test_lead.py",
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
        [sys.executable, "-m", "pytest", *TESTS, *(f"--ignore={file}" for file in LEFT_OUT), *OPTIONS],
        cwd=ROOT,
        env=environment | {"TRAINYARD_DATABASE_URL": URL},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
