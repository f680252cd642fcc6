"""Runs a Python command line in a fork, as a new interpreter would, but with its parent's imports."""

import importlib
import os
import runpy
import site
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PATH = "PYTHONPATH"
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


def run_and_exit(command: Sequence[str], environment: Mapping[str, str], folder: str) -> NoReturn:
    """Run a module as `run_command` does, and end this process as an interpreter ends."""
    status = 1
    try:
        status = run_command(command, environment, folder)
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            # The module may have closed or replaced it.
            with suppress(Exception):
                stream.flush()
        os._exit(status)


def run_command(command: Sequence[str], environment: Mapping[str, str], folder: str) -> int:
    """Run a module, and return the exit status.

    Args:
        command: an interpreter, maybe `-P`, `-m`, a module, and its arguments. Another interpreter than that
            of this process belongs to a virtual environment that has no other versions of packages that are
            imported here.
        environment: all environment variables.
        folder: the working folder.
    """
    python, *options = command[: command.index("-m")]
    module, *arguments = command[len(options) + 2 :]
    _set_environment(environment, [] if "-P" in options else [folder])
    importlib.invalidate_caches()
    if python != sys.executable:
        _use_packages_of(python)
    _forget_home()
    sys.argv[1:] = arguments
    try:
        # `__main__` is the module, as processes of `multiprocessing` need it.
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    # As the interpreter does: anything but a number is printed to stderr and makes the status 1.
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


def _set_environment(environment: Mapping[str, str], first: Sequence[str]) -> None:
    """Replace the variables, and the import folders that come from them."""
    # For `python -m`, the first entry is the working folder.
    inherited = {sys.path[0], *_folders(os.environ)}
    # Python sets it at its start, where nothing else names a locale.
    coerced = {} if any(environment.get(name) for name in LOCALE) else {LOCALE[1]: os.environ.get(LOCALE[1])}
    os.environ.clear()
    os.environ.update({name: value for name, value in coerced.items() if value} | dict(environment))
    rest = [path for path in sys.path if path not in inherited]
    sys.path[:] = [*first, *_folders(environment), *rest]


def _folders(environment: Mapping[str, str]) -> list[str]:
    return [path for path in environment.get(PATH, "").split(os.pathsep) if path]


def _use_packages_of(python: str) -> None:
    """Import from a virtual environment before this process's packages."""
    prefix = Path(python).parents[1]
    sys.executable, sys.prefix, sys.exec_prefix = python, str(prefix), str(prefix)
    site.PREFIXES[:] = [sys.prefix]
    before = list(sys.path)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site.addsitedir(str(prefix / "lib" / version / "site-packages"))
    added = [path for path in sys.path if path not in before]
    at = next((n for n, path in enumerate(before) if path.endswith("-packages")), len(before))
    sys.path[:] = [*before[:at], *added, *before[at:]]
    # That of this process belongs to another environment.
    sys.modules.pop("sitecustomize", None)
    site.execsitecustomize()


def _forget_home() -> None:
    """Have libraries use the home and temporary folder that the new variables name."""
    tempfile.tempdir = None
    # Private, because Keras has no public function for it.
    keras = sys.modules.get("keras.src.backend.config")
    if keras is not None:
        # `Path.home()` raises an error for a user without a home.
        vars(keras)["_KERAS_DIR"] = os.path.join(os.path.expanduser("~"), ".keras")  # noqa: PTH111, PTH118
