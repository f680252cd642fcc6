"""A free TCP port, for servers that cannot be given a listening socket."""

import socket


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
