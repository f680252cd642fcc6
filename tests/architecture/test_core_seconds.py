"""The share of core-seconds that each test folder may take."""

from tests.plugins.core_seconds import find_growth, read_table
from tests.plugins.tiers import TESTS, folder_of

TABLE = {"engine": 300.0, "web": 100.0, "tiny": 1.0}


def test_a_slower_machine_changes_no_share() -> None:
    assert find_growth({name: seconds * 3 for name, seconds in TABLE.items()}, TABLE) == []


def test_a_folder_that_takes_a_larger_share_is_named() -> None:
    (growth,) = find_growth({"engine": 300.0, "web": 160.0, "tiny": 1.0}, TABLE)
    assert growth.folder == "web"
    assert "tests/web took 34.7% of this run's core-seconds; 24.9% were expected" in str(growth)


def test_only_the_folders_of_a_run_are_compared() -> None:
    assert find_growth({"web": 100.0, "tiny": 1.0}, TABLE) == []


def test_a_small_folder_may_vary() -> None:
    assert find_growth({"engine": 300.0, "web": 100.0, "tiny": 4.0}, TABLE) == []


def test_every_folder_with_tests_is_in_the_table() -> None:
    folders = {folder_of(file) for file in TESTS.rglob("test_*.py")}
    assert folders - {"gpu"} == set(read_table()) - {"gpu"}
