"""Finds an address's client, for limits that count one client's requests."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


def client_network(address: str) -> str:
    """Return one client's network: an IPv4 address, or an IPv6 address's 64-bit network.

    All loopback addresses are one client, because every user on the machine has all of them. A text that is
    no address is returned as it is.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip
    if ip.is_loopback:
        return "loopback"
    return str(ip if isinstance(ip, IPv4Address) else ip_network(f"{ip}/64", strict=False))
