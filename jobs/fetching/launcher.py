"""Starts a process for each fetch, and ends it when the fetch is cancelled."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from django.conf import settings

from jobs.actions.data import fetch_attempts
from jobs.actions.data.fetch_attempts import Claimed

log = logging.getLogger(__name__)

_OF_THE_MACHINE = ("aws_", "boto", "google_", "gcsfs_", "gcloud_", "cloudsdk_", "fsspec_", "storage_emulator")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a fetch's environment: without this machine's credentials and proxies.

    Projects must not read with the machine's rights, and a proxy would resolve names by itself.
    """
    inherited = {
        name: value
        for name, value in variables.items()
        if not name.lower().startswith(_OF_THE_MACHINE) and name.lower() not in _PROXIES
    }
    return inherited | {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    }


def command(claimed: Claimed) -> tuple[str, ...]:
    """Return a fetch's command. It is killed when this process dies."""
    wrapper = settings.BASE_DIR / "webapp" / "ops" / "parent_death.py"
    return (
        *(sys.executable, "-S", "-E", str(wrapper), str(os.getpid())),
        *(sys.executable, "-m", "jobs.fetching", str(claimed.fetch), str(claimed.fence)),
    )


class Launcher:
    """Starts one scheduler's fetch processes. Call it from one thread, which must not end before it.

    Args:
        command: returns a fetch's command; tests pass another one.
    """

    def __init__(self, command: Callable[[Claimed], Sequence[str]] = command) -> None:
        self._command = command
        self._running: dict[Claimed, subprocess.Popen[bytes]] = {}

    def __call__(self) -> None:
        """Start processes for fetches that wait, and end those whose fetches were cancelled."""
        for claimed, process in list(self._running.items()):
            if process.poll() is not None:
                del self._running[claimed]
                fetch_attempts.process_ended(claimed)
            elif not fetch_attempts.is_held(claimed):
                process.kill()
        fetch_attempts.reap_fetches()
        for claimed in fetch_attempts.claim_waiting():
            self._start(claimed)

    def _start(self, claimed: Claimed) -> None:
        try:
            self._running[claimed] = subprocess.Popen(  # noqa: S603 - numbers alone are arguments
                self._command(claimed),
                env=environment(os.environ),
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                # Ctrl-C in a terminal reaches the scheduler alone, which ends its processes.
                start_new_session=True,
            )
        except OSError as error:  # too many processes, or no memory: the scheduler continues
            log.warning("fetch %s cannot be started: %s", claimed.fetch, error)
            fetch_attempts.process_ended(claimed)
            return
        log.info("fetch %s is started", claimed.fetch)

    @property
    def pids(self) -> list[int]:
        """Return the ids of the processes that are not known to have ended."""
        return [process.pid for process in self._running.values()]

    def stop(self) -> None:
        """End all processes; the next scheduler begins their fetches again."""
        for process in self._running.values():
            process.send_signal(signal.SIGKILL)
        for claimed, process in self._running.items():
            process.wait()
            fetch_attempts.give_back(claimed)
        self._running.clear()
