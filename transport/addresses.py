"""Reads clients' addresses."""

import ipaddress


def plain_client(client: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return a client's address and port.

    An IPv6 socket that listens on `::` accepts IPv4 clients too, with addresses such as `::ffff:192.0.2.1`.
    They get their IPv4 address: otherwise they would all be in one network of 64 bits, and no trusted proxy
    would be among them.
    """
    if client is None or not client[0].startswith("::ffff:"):
        return client
    mapped = ipaddress.IPv6Address(client[0]).ipv4_mapped
    return client if mapped is None else (str(mapped), client[1])
