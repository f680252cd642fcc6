"""A real installation's settings: strict, and without warnings from Django's checks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from transport.admission import LOOPBACK
from webapp.settings import env

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


def test_production_files_are_hashed_with_the_imports_of_their_modules(tmp_path: Path) -> None:
    done = manage(tmp_path, "collectstatic", "--noinput", TRAINYARD_PUBLIC_URL="https://yard.example")
    assert done.returncode == 0, done.stdout + done.stderr
    app = next((tmp_path / "static" / "js").glob("app.????????????.js")).read_text()
    assert 'import "./theme.js"' not in app
    assert list((tmp_path / "static" / "css").glob("app.*.css.gz"))


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
        ("TRAINYARD_PUBLIC_URL", "https://yard.example/path"),
        ("TRAINYARD_ALLOWED_HOSTS", "*"),
        ("TRAINYARD_DATABASE_URL", "mysql://localhost/yard"),
        ("TRAINYARD_DEBUG", "perhaps"),
    ],
)
def test_invalid_values_stop_the_start_with_a_message(tmp_path: Path, name: str, value: str) -> None:
    done = manage(tmp_path, "check", **{name: value})
    assert done.returncode != 0
    assert name in done.stderr


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
