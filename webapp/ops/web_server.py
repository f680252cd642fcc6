"""Runs the web server: uvicorn on an inherited socket, which the supervisor keeps open during a restart.

`uvicorn --fd` would treat it as a unix socket and leave Nagle's algorithm on (40 ms per response).
"""

import argparse
import socket

import uvicorn

# Time for open WebSockets and slow responses at shutdown; less than the grace of the part.
CLOSING_SECONDS = 5


def main() -> None:
    """Serve the dashboard until SIGTERM."""
    parser = argparse.ArgumentParser(description="Serves the dashboard on an inherited listening socket.")
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited socket")
    listener = socket.socket(fileno=parser.parse_args().fd)
    config = uvicorn.Config(
        "webapp.asgi:application",
        ws="websockets-sansio",
        # Django's handler does not support it.
        lifespan="off",
        timeout_graceful_shutdown=CLOSING_SECONDS,
        access_log=False,
        log_level="warning",
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
