"""The table of variables has every name in the tree, and no other; a page lists what operators may set."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import known_variables, removed_settings
from tests.architecture.sources import ROOT
from workers.serving.limits import Limits
from workers.serving.options import option_parser
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.timing import FIXED, Timing

NAME = re.compile(r"\bTRAINYARD_[A-Z0-9_]*[A-Z0-9]\b(?![*…_])")
FOLDERS = (
    *("jobs", "transport", "webapp", "workers", "templates", "tests", "benchmarks", "scripts", "deploy"),
    *(".ci", "docs"),
)
FILES = ("Makefile", "Dockerfile", "docker-compose.yml", "docker-compose.gpu.yml", "README.md")
OLD = ("docs/decisions", "docs/benchmarks", "tests/upgrade")
"""What earlier versions read may be named there."""
DJANGO = {
    "TRAINYARD_HAS_KEY",
    "TRAINYARD_COOKIE_SUFFIX",
    "TRAINYARD_SECRET_KEYS",
    "TRAINYARD_API_RATE",
    "TRAINYARD_API_BURST",
}
"""Settings of Django that no variable sets."""
EXAMPLES = {"TRAINYARD_SECRET"}
"""What tests give as a variable that does not reach a run."""
TABLE = {"jobs/known_variables.py", "tests/architecture/test_known_variables.py"}
WRONG = {
    "tests/monitoring/processes/test_last_words.py",
    "tests/ops/test_known_variables.py",
    "tests/ops/installation/test_variables.py",
}
"""Tests of the refusal."""


def files() -> Iterator[Path]:
    yield from (ROOT / name for name in FILES)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and not name.startswith(OLD) and name not in TABLE | WRONG:
                yield path


@pytest.fixture(scope="module")
def occurring() -> dict[str, str]:
    """Each name in the tree, with one file that has it."""
    found: dict[str, str] = {}
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for name in NAME.findall(text) if "TRAINYARD_" in text else ():
            found.setdefault(name, path.relative_to(ROOT).as_posix())
    return found


def of_families() -> set[str]:
    return {name for family in known_variables.FAMILIES for name in family.names()}


def test_each_name_in_the_tree_is_in_the_table(occurring: dict[str, str]) -> None:
    named = {name: file for name, file in occurring.items() if name not in DJANGO | EXAMPLES}
    assert {name: file for name, file in named.items() if not known_variables.is_known(name)} == {}


def test_each_name_of_the_table_occurs_in_the_tree(occurring: dict[str, str]) -> None:
    table = known_variables.all_names() - of_families() - removed_settings.REMOVED.keys()
    assert {name for name in table if name not in occurring} == set()


def test_a_name_is_in_one_list_only() -> None:
    lists = (
        known_variables.OPERATOR,
        known_variables.COMPOSE,
        known_variables.INTERNAL,
        known_variables.TESTS,
        removed_settings.REMOVED,
        of_families() - removed_settings.REMOVED.keys(),
    )
    assert sum(map(len, lists)) == len({name for names in lists for name in names})


def test_the_page_lists_exactly_what_operators_may_set() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    fixed = {f"TRAINYARD_NODE_{name.upper()}" for name in FIXED}
    settable = {*known_variables.OPERATOR, *known_variables.COMPOSE, *of_families()} - fixed
    assert set(NAME.findall(page)) == settable


@pytest.mark.parametrize(
    ("prefix", "settings"),
    [
        ("TRAINYARD_NODE_", Timing),
        ("TRAINYARD_LIMIT_", TaskLimits),
        ("TRAINYARD_SANDBOX_", SandboxLimits),
    ],
)
def test_names_of_families_are_the_fields_of_their_classes(prefix: str, settings: type[Timing]) -> None:
    (family,) = [family for family in known_variables.FAMILIES if family.prefix == prefix]
    assert family.names() == {prefix + field.name.upper() for field in dataclasses.fields(settings)}


def test_names_of_the_prediction_server_are_the_options_of_its_command_line() -> None:
    (family,) = [family for family in known_variables.FAMILIES if family.part == "serving"]
    options = {action.dest for action in option_parser({}, Limits())._actions} - {"help"}
    assert family.names() == {family.prefix + option.upper() for option in options}
