"""Finds the client of an address, for limits that count the requests of one client."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


def network_of(address: str) -> str:
    """Return the part of an address that one client has: for IPv6 its network of 64 bits.

    All loopback addresses are one client, because every user of the machine has all of them. A text that is
    no address is returned as it is.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if found.is_loopback:
        return "loopback"
    return str(found if isinstance(found, IPv4Address) else ip_network(f"{found}/64", strict=False))
