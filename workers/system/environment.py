"""Builds a runner's environment variables from an allow-list, so that no secret reaches it."""

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
CODE_ROOT = Path(__file__).resolve().parents[2]
"""The folder of the packages `jobs` and `workers`."""


def runner_environment(home: Path, *, devices: str | None = None) -> dict[str, str]:
    """Return the environment for a runner whose private folder is `home`.

    Args:
        home: the runner's HOME, for files that libraries write there.
        devices: the value for CUDA_VISIBLE_DEVICES. None hides all GPUs: they belong to other attempts.
    """
    passed = {name: value for name, value in os.environ.items() if _allowed(name)}
    return passed | {
        "HOME": str(home),
        "PYTHONPATH": str(CODE_ROOT),
        # No printed line is lost when the process is killed.
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "KERAS_BACKEND": "jax",
        "CUDA_VISIBLE_DEVICES": devices or "",
        # The worker numbers GPUs in this order. CUDA's own order begins with the fastest one.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that size a process's thread pools.

    NPROC sizes XLA's pool on the CPU. The others size NumPy's BLAS, which starts its threads
    when it is imported.
    """
    return dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))


def secret_values(environment: Mapping[str, str]) -> set[str]:
    """Return the values to mask in logs: from variables whose names mark them as secret."""
    return {value for name, value in environment.items() if names_secret(name)}


def names_secret(name: str) -> bool:
    """Return whether a variable's name marks its value as secret."""
    return any(word in name.upper() for word in SECRET_WORDS)


def _allowed(name: str) -> bool:
    # The name of a secret may begin with an allowed prefix.
    return not names_secret(name) and (name in ALLOWED or name.startswith(ALLOWED_PREFIXES))
