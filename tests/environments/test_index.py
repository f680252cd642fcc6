"""Where packages come from: variables of the operator, else the configuration of pip."""

from pathlib import Path

import pytest

from jobs.messages.sandbox import Level
from workers.confinement.environments import index
from workers.confinement.environments.building import _way_to
from workers.confinement.environments.index import (
    FOLDER_VARIABLE,
    HOSTS_VARIABLE,
    INDEX_VARIABLE,
    NoIndex,
    PackageIndex,
)
from workers.confinement.sandbox import landlock


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """An environment whose pip has one file of configuration."""
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://reader:word@mirror.example/simple\nextra-index-url =\n"
        "  http://more.example:8080/simple\ntimeout = 7\nproxy = http://proxy.example:3128\n"
        f"constraint = {tmp_path}/limits.txt\n"
    )
    (tmp_path / "limits.txt").write_text("# a comment\ntorch<=2 # newest here\n-r other.txt\n")
    return {"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}


def test_the_configuration_of_pip_is_the_default(given: dict[str, str]) -> None:
    found = index.read(given)
    assert found.urls[0] == "https://reader:word@mirror.example/simple"
    assert {("mirror.example", 443), ("more.example", 8080)} <= found.hosts
    assert (found.timeout, found.upstream) == (7, "http://proxy.example:3128")
    assert "torch<=2" in found.constraints
    assert found.has_password
    assert "word" not in found.described()


def test_the_variable_names_other_indexes(given: dict[str, str]) -> None:
    wanted = {INDEX_VARIABLE: "https://own.example/simple https://second.example/simple"}
    found = index.read(given | wanted | {HOSTS_VARIABLE: "files.example cdn.example:8443"})
    assert found.urls == ("https://own.example/simple", "https://second.example/simple")
    assert found.links == ()
    assert found.hosts == {
        ("own.example", 443), ("second.example", 443), ("files.example", 443), ("cdn.example", 8443)
    }  # fmt: skip
    assert not found.has_password


def test_with_a_folder_there_is_no_index(given: dict[str, str], tmp_path: Path) -> None:
    found = index.read(given | {FOLDER_VARIABLE: str(tmp_path), INDEX_VARIABLE: "https://own.example"})
    assert (found.urls, found.links, found.hosts) == ((), (str(tmp_path),), frozenset())


@pytest.mark.parametrize(
    ("variables", "words"),
    [({FOLDER_VARIABLE: "/absent"}, "no folder"), ({HOSTS_VARIABLE: "host:port"}, "host:port")],
)
def test_settings_that_cannot_be_used_are_named(
    given: dict[str, str], variables: dict[str, str], words: str
) -> None:
    with pytest.raises(NoIndex, match=words):
        index.read(given | variables)


@pytest.mark.parametrize(
    ("level", "version", "network", "wheels_only"),
    [
        (Level.BUBBLEWRAP, 0, False, False),
        (Level.LANDLOCK, 4, True, False),
        (Level.LANDLOCK, 3, True, True),
        (Level.PROCESS, 7, True, True),
    ],
)
def test_only_wheels_are_installed_where_the_network_cannot_be_restricted(
    monkeypatch: pytest.MonkeyPatch, level: Level, version: int, network: bool, wheels_only: bool
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: version)
    way = _way_to(PackageIndex(hosts=frozenset({("index.example", 443)})), level)
    assert (way.network, bool(way.wheels_only)) == (network, wheels_only)


@pytest.mark.parametrize("level", list(Level))
def test_a_folder_of_wheels_needs_no_network(level: Level) -> None:
    assert not _way_to(PackageIndex(links=("/wheels",)), level).network
