"""The environment of a runner: built from an allow-list, so that no secret of ours gets in."""

import os
from collections.abc import Mapping
from pathlib import Path

ALLOWED = frozenset(
    {
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "XLA_FLAGS",
        "SSL_CERT_FILE",
        "TRAINYARD_CHECKPOINT_SECONDS",
    }
)
ALLOWED_PREFIXES = (
    "LC_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "XLA_PYTHON_CLIENT_",
    "XLA_CLIENT_",
    "JAX_",
    "COVERAGE_",
)
SECRET_WORDS = ("SECRET", "TOKEN", "PASSWORD", "PASSWD", "KEY", "URL")
CODE = Path(__file__).resolve().parents[2]
"""The folder that holds our packages."""


def runner_environment(home: Path, *, devices: str | None = None) -> dict[str, str]:
    """Return the environment of a runner whose private folder is `home`.

    Args:
        home: the runner's HOME; what libraries cache or write by habit goes there.
        devices: what CUDA_VISIBLE_DEVICES shall say, if anything.
    """
    environment = {name: value for name, value in os.environ.items() if _allowed(name)}
    environment |= {
        "HOME": str(home),
        "PYTHONPATH": str(CODE),
        "PYTHONUNBUFFERED": "1",  # a line that was printed is in the log when the run ends
        "PYTHONNOUSERSITE": "1",
        "KERAS_BACKEND": "jax",
    }
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = devices
    return environment


def secrets_of(environment: Mapping[str, str]) -> set[str]:
    """Return the values that must not show up in a log: of variables whose names say so."""
    return {
        value
        for name, value in environment.items()
        if any(word in name.upper() for word in SECRET_WORDS) and not _allowed(name)
    }


def _allowed(name: str) -> bool:
    if any(word in name.upper() for word in SECRET_WORDS):
        return False
    return name in ALLOWED or name.startswith(ALLOWED_PREFIXES)
