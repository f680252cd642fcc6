"""Files of the machine are read below the folders that the operator opened, and links are not followed."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs.errors import FetchFailed
from jobs.sources.files import open_file
from jobs.spec.data.addresses import parse
from webapp.settings import env, places

CSV = b"age,price\n1,2\n"


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "data"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_bytes(CSV)
    (tmp_path / "secret.csv").write_bytes(b"secret")
    settings.TRAINYARD_DATA_ROOTS = (str(folder),)
    return folder


def read(path: object) -> bytes:
    return b"".join(open_file(parse(str(path))).blocks)


def test_a_file_below_a_root_is_read_by_its_path_and_by_its_url(root: Path) -> None:
    assert read(root / "in" / "a.csv") == CSV
    assert read(f"file://{root}/in/a.csv") == CSV
    assert open_file(parse(str(root / "in" / "a.csv"))).size == len(CSV)


def test_no_file_is_read_without_roots(root: Path, settings: Any) -> None:
    settings.TRAINYARD_DATA_ROOTS = ()
    with pytest.raises(FetchFailed) as refused:
        read(root / "in" / "a.csv")
    assert "TRAINYARD_DATA_ROOTS" in refused.value.message


def test_a_file_outside_of_the_roots_is_refused(root: Path) -> None:
    for path in (root.parent / "secret.csv", f"{root}2/a.csv", "/etc/passwd", root):
        with pytest.raises(FetchFailed) as refused:
            read(path)
        assert refused.value.code == "address_refused"


def test_links_are_not_followed_in_any_part_of_a_path(root: Path) -> None:
    (root / "link.csv").symlink_to(root.parent / "secret.csv")
    (root / "inside.csv").symlink_to(root / "in" / "a.csv")
    (root / "out").symlink_to(root.parent)
    for path in ("link.csv", "inside.csv", "out/secret.csv"):
        with pytest.raises(FetchFailed):
            read(root / path)


def test_only_regular_files_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe.csv")
    for path in ("pipe.csv", "in", "missing.csv", "in/a.csv/b.csv"):
        with pytest.raises(FetchFailed) as refused:
            read(root / path)
        assert refused.value.code == "source_refused"


def test_a_file_that_changes_while_it_is_read_is_refused(root: Path) -> None:
    source = open_file(parse(str(root / "in" / "a.csv")))
    with (root / "in" / "a.csv").open("ab") as file:
        file.write(b"3,4\n")
    with pytest.raises(FetchFailed) as refused:
        b"".join(source.blocks)
    assert refused.value.code == "source_changed"


@pytest.mark.parametrize("value", ["data", "/data/../etc", "/", "{home}", "{home}/artifacts", "{parent}"])
def test_roots_that_are_relative_or_overlap_with_the_installation_stop_the_start(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "state" / "home"
    home.mkdir(parents=True)
    monkeypatch.setenv("TRAINYARD_DATA_ROOTS", value.format(home=home, parent=home.parent))
    with pytest.raises(ImproperlyConfigured, match="TRAINYARD_DATA_ROOTS"):
        places.data_roots([home])


def test_a_link_to_the_installation_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    monkeypatch.setenv("TRAINYARD_DATA_ROOTS", str(tmp_path / "link"))
    with pytest.raises(ImproperlyConfigured):
        places.data_roots([tmp_path / "home"])


@pytest.mark.parametrize(
    "value", ["example.org", "example.org:", "*.org:443", "x:0", "x:99999", "::1:80", "a b:1"]
)
def test_hosts_without_a_port_or_with_a_pattern_stop_the_start(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_FETCH_ALLOW", value)
    with pytest.raises(ImproperlyConfigured, match="TRAINYARD_FETCH_ALLOW"):
        env.hosts_and_ports("TRAINYARD_FETCH_ALLOW")


def test_listed_hosts_are_compared_in_their_usual_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_FETCH_ALLOW", "Data.Internal:443, [FD00::0:1]:9000,10.0.0.1:80")
    assert env.hosts_and_ports("TRAINYARD_FETCH_ALLOW") == {
        ("data.internal", 443),
        ("fd00::1", 9000),
        ("10.0.0.1", 80),
    }
