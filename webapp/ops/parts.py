"""Builds every part's command line. Parts in other packages are named, never imported."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from jobs.program import ROOT
from webapp.ops.broker import Broker
from webapp.ops.home import Home
from webapp.ops.service import Part

FAILURES_BEFORE_DATA_RESET = 3


@dataclass(frozen=True)
class Options:
    """The options for `manage.py up`."""

    host: str = "127.0.0.1"
    port: int = 8000
    serving_port: int = 8501
    workers: int = 1
    slots: int | None = None


def web_argv(descriptor: int, health_socket: Path | None = None) -> tuple[str, ...]:
    """Return the web server's command. It inherits the listening socket `descriptor`."""
    health = () if health_socket is None else ("--health-socket", str(health_socket))
    return (sys.executable, "-m", "webapp.ops.web_server", "--fd", str(descriptor), *health)


def management_argv(*arguments: str) -> tuple[str, ...]:
    """Return a management command's command line, to be run in the folder `ROOT`."""
    return (sys.executable, "-m", "webapp", *arguments)


def scheduler_argv() -> tuple[str, ...]:
    return management_argv("scheduler")


def worker_argv(
    pool: str,
    slots: int | None,
    *,
    labels: Mapping[str, str] = MappingProxyType({}),
    options: Mapping[str, str | None] = MappingProxyType({}),
    check: bool = False,
) -> tuple[str, ...]:
    """Return a worker's command.

    Args:
        pool: the pool whose jobs it runs.
        slots: None for as many as it has devices or cores.
        labels: jobs may ask for them.
        options: further options by name, without those that are None.
        check: only print how its runners would be isolated.
    """
    sized = () if slots is None else ("--slots", str(slots))
    labelled = tuple(word for key, value in labels.items() for word in ("--label", f"{key}={value}"))
    others = tuple(word for name, value in options.items() if value is not None for word in (name, value))
    checked = ("--check",) if check else ()
    return (sys.executable, "-m", "workers.node", "--pool", pool, *sized, *labelled, *others, *checked)


def chief_argv(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command for KerasTuner scripts' chief."""
    return (sys.executable, "-m", "workers.chief", *arguments)


@dataclass(frozen=True)
class ServingOptions:
    """The options for a prediction server."""

    host: str
    port: int
    dashboard: str
    artifacts: str
    token_file: Path
    public_key_file: Path
    health_socket: Path | None = None


def serving_argv(home: Home, options: ServingOptions) -> tuple[str, ...]:
    # Artifacts in object storage are fetched from the dashboard instead.
    artifacts = () if "://" in options.artifacts else ("--artifacts", options.artifacts)
    health = () if options.health_socket is None else ("--health-socket", str(options.health_socket))
    return (
        *(sys.executable, "-m", "workers.serving"),
        *("--host", options.host),
        *("--port", str(options.port)),
        *("--dashboard", options.dashboard),
        *("--token-file", str(options.token_file)),
        *("--public-key-file", str(options.public_key_file)),
        *("--home", str(home.root / "serving")),
        *("--environments", str(home.root / "environments")),
        *("--address-file", str(home.run / "serving.json")),
        *artifacts,
        *health,
    )


def broker_part(broker: Broker, home: Home) -> Part:
    """Return the part that runs the broker."""

    def reset_broken_data(failures: int) -> None:
        """Rename data that the broker cannot read: it contains only hints, so an empty file is as good."""
        if failures and failures % FAILURES_BEFORE_DATA_RESET == 0 and any(home.broker_data.iterdir()):
            home.broker_data.rename(home.broker_data.with_name(f"broker-broken-{os.getpid()}-{failures}"))
        home.broker_data.mkdir(mode=0o700, exist_ok=True)

    assert broker.argv is not None  # noqa: S101 - a broker given by URL is not started
    return Part("broker", broker.argv, grace=5, before_start=reset_broken_data)


def exec_command(argv: tuple[str, ...]) -> NoReturn:
    """Replace this process by `argv`, run in the program's folder so that its modules are found."""
    os.chdir(ROOT)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], argv)  # noqa: S606 - a list of arguments, no shell
