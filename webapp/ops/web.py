"""The web server process: uvicorn on a socket that the supervisor opened and keeps while we restart.

`uvicorn --fd` would take the socket for a unix one and leave Nagle's algorithm on (40 ms an answer).
"""

import argparse
import socket

import uvicorn

CLOSING_SECONDS = 5  # how long an open WebSocket or a slow answer may take at the end


def main() -> None:
    """Serve the dashboard until SIGTERM."""
    parser = argparse.ArgumentParser(description="Serves the dashboard on an inherited listening socket.")
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited socket")
    listener = socket.socket(fileno=parser.parse_args().fd)
    config = uvicorn.Config(
        "webapp.asgi:application",
        ws="websockets-sansio",
        lifespan="off",  # Django's handler has none
        timeout_graceful_shutdown=CLOSING_SECONDS,
        access_log=False,
        log_level="warning",
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
