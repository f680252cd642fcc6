"""A real installation's settings: strict, and without warnings from Django's checks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.urls import URLResolver, get_resolver
from pytest_django import Settings

from transport.admission import LOOPBACK
from webapp.settings import env, public_address

ROOT = Path(__file__).resolve().parents[3]


def manage(home: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    variables = {
        key: value for key, value in os.environ.items() if not key.startswith(("TRAINYARD_", "DJANGO_"))
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**variables, "TRAINYARD_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_production_passes_every_deploy_check(tmp_path: Path) -> None:
    done = manage(
        tmp_path, "check", "--deploy", "--fail-level", "WARNING", TRAINYARD_PUBLIC_URL="https://yard.example"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/me", 401),
        ("/api/v1/serving/releases", 401),
        (f"/api/v1/artifacts/{'0' * 64}", 401),
        ("/healthz", 200),
        ("/api/v1/jobs", 301),
        ("/", 301),
    ],
)
def test_prediction_servers_are_not_redirected_to_https(
    path: str, status: int, settings: Settings, db: None
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get(path).status_code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRAINYARD_PUBLIC_URL", "yard.example"),
        ("TRAINYARD_PUBLIC_URL", "https://yard.example/jobs"),
        ("TRAINYARD_ALLOWED_HOSTS", "*"),
        ("TRAINYARD_DATABASE_URL", "mysql://localhost/yard"),
        ("TRAINYARD_DEBUG", "perhaps"),
    ],
)
def test_invalid_values_stop_the_start_with_a_message(tmp_path: Path, name: str, value: str) -> None:
    done = manage(tmp_path, "check", **{name: value})
    assert done.returncode != 0
    assert name in done.stderr


@pytest.mark.parametrize(
    "address",
    [
        "https://yard.example",
        "https://yard.example:8443",
        "http://10.0.0.7:8000",
        "https://tools.example/trainyard",
        "https://tools.example/teams/vision-2/trainyard_x",
    ],
)
def test_a_public_address_may_have_a_port_and_a_path(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("TRAINYARD_PUBLIC_URL", f"{address}/")
    assert public_address.public_url() == address


@pytest.mark.parametrize(
    "address",
    [
        "tools.example/trainyard",
        "ftp://tools.example",
        "https://tools.example/a b",
        "https://tools.example//trainyard",
        "https://tools.example/../trainyard",
        "https://tools.example/trainyard?x=1",
        "https://tools.example/trainyard#top",
        "https://tools.example/train%20yard",
        "https://user@tools.example/trainyard",
        "https://tools.example:port/trainyard",
        "https:///trainyard",
        "https://tools.example/api",
        "https://tools.example/jobs/trainyard",
    ],
)
def test_another_public_address_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("TRAINYARD_PUBLIC_URL", address)
    with pytest.raises(ImproperlyConfigured, match="TRAINYARD_PUBLIC_URL="):
        public_address.public_url()


@pytest.mark.parametrize("address", ["predictions", "ftp://host", "http://", "http://host:port"])
def test_an_address_of_predictions_that_cannot_be_asked_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("TRAINYARD_SERVING_URL", address)
    with pytest.raises(ImproperlyConfigured, match="TRAINYARD_SERVING_URL="):
        public_address.check_serving_url()


def test_names_of_hosts_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    good = "web, yard.example, .yard.example, 10.0.0.7, [::1], my_host-2"
    monkeypatch.setenv("TRAINYARD_ALLOWED_HOSTS", good)
    assert public_address.allowed_hosts("")[3:] == good.split(", ")
    for wrong in ("http://a", "b/c", "a:8000", "a b", "-"):
        monkeypatch.setenv("TRAINYARD_ALLOWED_HOSTS", f"web,{wrong}")
        with pytest.raises(ImproperlyConfigured, match="is no name of a host"):
            public_address.allowed_hosts("")


def test_the_places_that_a_public_path_may_not_begin_with_are_those_of_the_pages() -> None:
    own = {"static", "ws", *(route.lstrip("^").split("/")[0] for route in all_routes())} - {""}
    assert own == public_address.OWN_PLACES


def all_routes() -> Iterator[str]:
    def walk(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
        for pattern in resolver.url_patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern, route)
            else:
                yield route

    return walk(get_resolver())


def test_none_is_a_list_without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_TRUSTED_PROXIES", "none")
    assert env.networks("TRAINYARD_TRUSTED_PROXIES", LOOPBACK) == []
    monkeypatch.delenv("TRAINYARD_TRUSTED_PROXIES")
    assert env.networks("TRAINYARD_TRUSTED_PROXIES", LOOPBACK) == list(LOOPBACK)


def test_the_web_process_never_loads_jax_or_keras(tmp_path: Path) -> None:
    code = "import sys, webapp.asgi; print({'jax', 'keras', 'keras_tuner'} & set(sys.modules))"
    variables = {
        key: value for key, value in os.environ.items() if not key.startswith(("TRAINYARD_", "DJANGO_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**variables, "TRAINYARD_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "set()", done.stdout + done.stderr
