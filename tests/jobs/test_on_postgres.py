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
REFUSED_OR_STORED_CODE = (
    "test_the_same_files_are_the_same_version_however_they_arrive",
    "test_the_digest_is_that_of_sorted_paths_and_contents",
    "test_pasted_text_is_a_file_with_ordinary_lines",
    "test_a_refusal_names_the_field",
    "test_a_json_body_is_checked",
    "test_half_of_a_character_in_json_is_malformed",
    "test_a_file_that_ends_the_reader_is_refused",
    "test_while_other_code_is_read_the_client_is_asked_to_wait",
    "test_the_empty_path_is_no_file",
    "test_files_arrive_also_if_the_text_is_blank",
)
"""Tests of `tests/code/test_api.py` about what arrives: it is refused, or stored by the same statements."""


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
    left_out = [f"--ignore={file}" for file in LEFT_OUT]
    left_out += [f"--deselect=tests/code/test_api.py::{name}" for name in REFUSED_OR_STORED_CODE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *TESTS, *left_out, *OPTIONS],
        cwd=ROOT,
        env=environment | {"TRAINYARD_DATABASE_URL": URL},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
