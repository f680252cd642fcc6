"""Where packages come from: the operator's variables, else pip's configuration."""

import os
from pathlib import Path

import pytest

from jobs.messages.sandbox import Level
from workers.confinement.environments import default_index, index
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
def configured(tmp_path: Path) -> dict[str, str]:
    """An environment whose pip has one configuration file."""
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://reader:word@mirror.example/simple\nextra-index-url =\n"
        "  http://more.example:8080/simple\ntimeout = 7\nproxy = http://proxy.example:3128\n"
        f"constraint = {tmp_path}/limits.txt\n"
    )
    (tmp_path / "limits.txt").write_text("# a comment\ntorch<=2 # newest here\n-r other.txt\n")
    return {"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}


def test_the_configuration_of_pip_is_the_default(configured: dict[str, str]) -> None:
    source = index.read(configured)
    assert source.urls[0] == "https://reader:word@mirror.example/simple"
    assert {("mirror.example", 443), ("more.example", 8080)} <= source.hosts
    assert (source.timeout, source.upstream) == (7, "http://proxy.example:3128")
    assert "torch<=2" in source.constraints
    assert source.has_password
    assert "word" not in source.described()


def test_the_variable_names_other_indexes(configured: dict[str, str]) -> None:
    named = {INDEX_VARIABLE: "https://own.example/simple https://second.example/simple"}
    source = index.read(configured | named | {HOSTS_VARIABLE: "files.example cdn.example:8443"})
    assert source.urls == ("https://own.example/simple", "https://second.example/simple")
    assert source.links == ()
    assert source.hosts == {
        ("own.example", 443), ("second.example", 443), ("files.example", 443), ("cdn.example", 8443)
    }  # fmt: skip
    assert not source.has_password


def test_with_a_folder_there_is_no_index(configured: dict[str, str], tmp_path: Path) -> None:
    source = index.read(configured | {FOLDER_VARIABLE: str(tmp_path), INDEX_VARIABLE: "https://own.example"})
    assert (source.urls, source.links, source.hosts) == ((), (str(tmp_path),), frozenset())


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({FOLDER_VARIABLE: "/absent"}, "no folder"),
        ({HOSTS_VARIABLE: "host:port"}, "host:port"),
        ({"PIP_CERT": "/absent.pem"}, "certificates '/absent.pem' is missing"),
        ({"PIP_TIMEOUT": "soon"}, "'soon' of pip's configuration is no number"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    configured: dict[str, str], variables: dict[str, str], words: str
) -> None:
    with pytest.raises(NoIndex, match=words):
        index.read(configured | variables)


def test_a_broken_configuration_of_pip_is_named_without_its_content(configured: dict[str, str]) -> None:
    Path(configured["PIP_CONFIG_FILE"]).write_text("index-url = https://reader:word@mirror.example/simple\n")
    with pytest.raises(NoIndex, match=r"pip\.conf is no valid configuration of pip") as refused:
        index.read(configured)
    assert "word" not in str(refused.value)


def test_without_a_configuration_uv_names_the_index(tmp_path: Path) -> None:
    source = index.read({"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull})
    (url,) = source.urls
    assert url.startswith("https://")
    assert default_index.is_default(f"{url}/")
    assert (source.timeout, source.upstream, source.certificates) == (15, None, None)


def test_only_wheels_and_folders_are_used_if_pip_has_no_index(configured: dict[str, str]) -> None:
    links = {
        "PIP_NO_INDEX": "true",
        "PIP_FIND_LINKS": "https://reader:word@mirror.example/wheels /srv/wheels",
    }
    source = index.read(configured | links)
    assert (source.urls, len(source.links)) == ((), 2)
    assert source.described() == "the folder https://mirror.example/wheels, /srv/wheels"


def test_a_password_is_masked_as_it_is_written_and_as_it_is_read() -> None:
    source = PackageIndex(urls=("https://reader:a%2Fb@mirror.example/simple",))
    assert source.passwords == {"reader", "a%2Fb", "a/b"}


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
