"""uv is found and configured, and the hosts that serve its index's files are asked for."""

import hashlib
from pathlib import Path

import pytest

from tests.environments.conftest import serving
from tests.environments.packages import wheel
from workers.confinement.environments import default_index, uv_command
from workers.confinement.environments.file_hosts import PROBE, find_file_hosts
from workers.confinement.environments.index import PackageIndex
from workers.confinement.environments.uv_command import NoInstaller


def test_uv_is_found_beside_this_program_or_its_absence_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(uv_command.find_uv()).name == "uv"

    def fail() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(uv_command, "find_uv_bin", fail)
    with pytest.raises(NoInstaller, match="uv is missing on this worker; it is a dependency"):
        uv_command.find_uv()


def test_each_setting_of_the_index_reaches_uv(tmp_path: Path) -> None:
    index = PackageIndex(
        urls=("https://main.example/simple", "https://second.example/simple"),
        links=("/srv/wheels", "/srv/a,b", "https://links.example/a,b"),
        trusted=("main.example", "second.example:8443"), certificates="/srv/own.pem", timeout=7,
    )  # fmt: skip
    variables = uv_command.variables(index)
    assert variables["UV_DEFAULT_INDEX"] == "https://main.example/simple"
    assert variables["UV_INDEX"] == "https://second.example/simple"
    assert variables["UV_FIND_LINKS"] == "/srv/wheels,file:///srv/a%2Cb,https://links.example/a%2Cb"
    assert variables["UV_INSECURE_HOST"] == "main.example second.example:8443"
    assert (variables["SSL_CERT_FILE"], variables["UV_HTTP_TIMEOUT"]) == ("/srv/own.pem", "7")
    assert variables["UV_SYSTEM_CERTS"] == variables["UV_NO_CONFIG"] == "1"
    assert variables["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    folder = uv_command.variables(PackageIndex(certificates=str(tmp_path)))
    assert (folder["SSL_CERT_DIR"], "SSL_CERT_FILE" in folder) == (str(tmp_path), False)


def test_without_an_index_or_sources_uv_is_told_so() -> None:
    index = PackageIndex(urls=("https://main.example/simple",))
    assert uv_command.options(index, wheels_only=False) == ()
    assert uv_command.options(PackageIndex(), wheels_only=True) == ("--no-index", "--only-binary", ":all:")


def test_the_default_index_names_the_hosts_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = wheel(tmp_path, PROBE)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    page = tmp_path / "simple" / PROBE
    page.mkdir(parents=True)
    with serving(tmp_path) as server:
        files = server.address.replace("127.0.0.1", "localhost")
        link = f'<a href="{files}/{file.name}#sha256={digest}">{file.name}</a>'
        (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
        url = f"{server.address}/simple"
        monkeypatch.setattr(default_index, "address", lambda: url)
        other = PackageIndex(urls=("https://other.example/simple",))
        assert find_file_hosts(other) == frozenset()
        assert find_file_hosts(other._replace(urls=(*other.urls, url))) == {("localhost", server.server_port)}


def test_a_default_index_that_does_not_answer_is_only_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = "http://127.0.0.1:9/simple"
    monkeypatch.setattr(default_index, "address", lambda: url)
    assert find_file_hosts(PackageIndex(urls=(url,), timeout=1)) == frozenset()
    assert "hosts of the files of the package index are not known" in caplog.text
