"""Runs the web server: uvicorn on an inherited socket, which the supervisor keeps open during a restart.

`uvicorn --fd` would treat it as a unix socket and leave Nagle's algorithm on (40 ms per response).
"""

import argparse
import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from jobs import known_variables
from jobs.logs.foreign_output import capture, end_capture, speak_json
from jobs.logs.lines import begin_part
from jobs.logs.start_errors import PartParser, one_sentence
from transport.http import LimitedHttpProtocol
from transport.server import LimitedServer, limited
from transport.websocket import CountedWebSocket

if TYPE_CHECKING:
    from webapp.ops.version_watch import VersionWatch

# Time for open WebSockets and slow responses at shutdown; less than the grace of the part.
CLOSING_SECONDS = 5
# The event loop waits so long for each thread that computes, several times for each request. With Python's
# 5 ms, a few busy threads delay all other requests by seconds.
SWITCH_SECONDS = 0.0005
# A message to subscribe to a job has less than 100 bytes.
MAX_MESSAGE_BYTES = 64 * 2**10


class _Server(LimitedServer):
    """Writes the rest of its log before uvicorn raises the signal again, which ends the process at once."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        end_capture()


def main() -> None:
    """Serve the dashboard until SIGTERM."""
    speak_json("web")
    with one_sentence():
        known_variables.settle_or_exit()
        parser = PartParser(description="Serves the dashboard on an inherited listening socket.")
        parser.add_argument("--fd", type=int, required=True, help="number of the inherited socket")
        parser.add_argument("--health-socket", type=Path, help="unix socket for the supervisor's checks")
        options = parser.parse_args()
        begin_part("web")
        # The supervisor asks a server that does not answer for its stacks before it kills it.
        faulthandler.register(signal.SIGUSR2, file=capture("web") or sys.stderr, all_threads=True)
        sys.setswitchinterval(SWITCH_SECONDS)
        _serve(options)


def _serve(options: argparse.Namespace) -> None:
    gc.disable()  # until the apps are loaded; see `WebappConfig.ready`
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    import django  # once the module is named
    from django.conf import settings

    from webapp.ops.database_pool import use_pool

    use_pool()
    django.setup()
    # These modules import models.
    from jobs import database_use
    from jobs.errors import DatabaseReplaced
    from webapp.accounts import cookie_names
    from webapp.ops import static_files

    try:
        database_use.share(settings.DATABASES["default"], Path(settings.TRAINYARD_HOME))
    except DatabaseReplaced as error:
        sys.exit(error.message)
    static_files.use()
    protocol = limited(
        LimitedHttpProtocol,
        max_connections=settings.TRAINYARD_MAX_CONNECTIONS,
        max_per_address=settings.TRAINYARD_MAX_CONNECTIONS_PER_ADDRESS,
        trusted=settings.TRAINYARD_TRUSTED_PROXIES,
    )
    config = uvicorn.Config(
        "webapp.asgi:application",
        http=protocol,
        ws=CountedWebSocket,
        ws_max_size=MAX_MESSAGE_BYTES,
        forwarded_allow_ips=settings.TRAINYARD_TRUSTED_PROXIES,
        # Django's handler does not support it.
        lifespan="off",
        timeout_graceful_shutdown=CLOSING_SECONDS,
        # `webapp.middleware` writes it, with the user.
        access_log=False,
        log_config=None,  # the settings have configured logging
        log_level="warning",
        server_header=False,
    )
    server = _Server(config, options.health_socket, name="the dashboard")
    # Not by a signal, which uvicorn repeats at its end: the sentence would be lost, and so the exit status.
    watch = _new_watch(lambda: setattr(server, "should_exit", True))
    # While the database is away, this waits for the first request.
    cookie_names.complete()
    watch.start()
    server.run(sockets=[socket.socket(fileno=options.fd)])
    sys.exit(watch.problem)


def _new_watch(end: Callable[[], object]) -> "VersionWatch":
    """End with a message if the database is not this installation's. One that is away is no reason."""
    # These modules import models, which need `django.setup()` first.
    from django.conf import settings

    from jobs.errors import TrainyardError
    from webapp.ops.errors import OpsError
    from webapp.ops.home import Home
    from webapp.ops.preparation import database_error, keep_dashboard_token
    from webapp.ops.version_watch import VersionWatch

    def begin() -> None:
        try:
            keep_dashboard_token(Home(Path(settings.TRAINYARD_HOME)))
        except (OpsError, TrainyardError, OSError) as error:
            # Pages work without it, except the form Try it of a prediction server that asks for tokens.
            logging.getLogger(__name__).warning("no token for the prediction server: %s", error)

    watch = VersionWatch(end, begin=begin)
    if database_error() is None:
        watch.compare()
    if watch.problem is not None:
        sys.exit(watch.problem)
    return watch


if __name__ == "__main__":
    main()
