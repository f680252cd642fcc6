"""The command line of every part. The other rooms are named, never imported."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from webapp.ops.broker import Broker
from webapp.ops.home import Home
from webapp.ops.service import Part

ROOT = Path(__file__).resolve().parents[2]
BROKER_FAILURES_BEFORE_FRESH_DATA = 3


@dataclass(frozen=True)
class Options:
    """What `manage.py up` was asked for."""

    host: str = "127.0.0.1"
    port: int = 8000
    serving_port: int = 8501
    workers: int = 1
    slots: int | None = None


def web_argv(descriptor: int) -> tuple[str, ...]:
    """Return the web server's command; it accepts on an already listening socket."""
    return (sys.executable, "-m", "webapp.ops.web", "--fd", str(descriptor))


def scheduler_argv() -> tuple[str, ...]:
    """Return the scheduler's command."""
    return (sys.executable, str(ROOT / "manage.py"), "scheduler")


def worker_argv(pool: str, slots: int | None) -> tuple[str, ...]:
    """Return one worker's command; without `slots` it counts its own devices or cores."""
    sized = () if slots is None else ("--slots", str(slots))
    return (sys.executable, "-m", "workers.node", "--pool", pool, *sized)


def chief_argv(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command of a chief for scripts of KerasTuner."""
    return (sys.executable, "-m", "workers.chief", *arguments)


@dataclass(frozen=True)
class Serving:
    """Where one prediction server listens and whom it believes."""

    host: str
    port: int
    dashboard: str
    artifacts: str
    token_file: Path
    public_key_file: Path


def serving_argv(home: Home, place: Serving) -> tuple[str, ...]:
    """Return the prediction server's command."""
    # Artifacts in object storage are fetched through the dashboard instead.
    beside = () if "://" in place.artifacts else ("--artifacts", place.artifacts)
    return (
        *(sys.executable, "-m", "workers.serving"),
        *("--host", place.host),
        *("--port", str(place.port)),
        *("--dashboard", place.dashboard),
        *("--token-file", str(place.token_file)),
        *("--public-key-file", str(place.public_key_file)),
        *("--home", str(home.root / "serving")),
        *("--address-file", str(home.run / "serving.json")),
        *beside,
    )


def broker_part(broker: Broker, home: Home) -> Part:
    """Return the part that runs our own broker."""

    def set_broken_data_aside(failures: int) -> None:
        """The broker holds hints only: when it cannot read its file, an empty one is as good."""
        if failures and failures % BROKER_FAILURES_BEFORE_FRESH_DATA == 0 and any(home.broker_data.iterdir()):
            home.broker_data.rename(home.broker_data.with_name(f"broker-broken-{os.getpid()}-{failures}"))
        home.broker_data.mkdir(mode=0o700, exist_ok=True)

    assert broker.argv is not None  # noqa: S101 - a given broker is not started
    return Part("broker", broker.argv, grace=5, before_start=set_broken_data_aside)


def become(argv: tuple[str, ...]) -> NoReturn:
    """Replace this process by `argv`, run from the source folder so that its modules are found."""
    os.chdir(ROOT)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], argv)  # noqa: S606 - an argv list from our own code, no shell
