"""Decides to which network addresses a fetch may connect.

A name is resolved once, and the connection goes to the address that was checked: a second resolution could
give another one.
"""

import ipaddress
import socket
from typing import NamedTuple

from django.conf import settings

from jobs.errors import FetchFailed
from jobs.spec.data.addresses import host_and_port

MOST_ADDRESSES = 3
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_IPV4_IN_IPV6 = ipaddress.ip_network("::/96")
_RESERVED = (ipaddress.ip_network("2001::/32"), ipaddress.ip_network("3fff::/20"))
"""Teredo, which contains an IPv4 address, and documentation, which not every version of Python knows."""
_UNICAST = ipaddress.ip_network("2000::/3")
_RELAYS = ipaddress.ip_network("192.88.99.0/24")


class Endpoint(NamedTuple):
    """An address to connect to, as `socket` takes it."""

    family: socket.AddressFamily
    address: str
    port: int


def is_listed(host: str, port: int) -> bool:
    """Return whether an administrator listed a host and port in `TRAINYARD_FETCH_ALLOW`."""
    return (host, port) in settings.TRAINYARD_FETCH_ALLOW


def is_public(text: str) -> bool:
    """Return whether an IP address belongs to the public network.

    Private, loopback, link-local, multicast, reserved and documentation addresses do not, in any form in
    which IPv6 contains an IPv4 address.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = _ipv4_inside(address)
        if inner is None:
            return _is_public_ipv6(address)
        address = inner
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified or address in _RELAYS
    return address.is_global and not is_special


def _ipv4_inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that packets to an IPv6 address may reach; None if there is none."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or address in _IPV4_IN_IPV6:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _is_public_ipv6(address: ipaddress.IPv6Address) -> bool:
    # An address with a zone belongs to one network card.
    if (
        address.scope_id is not None
        or address not in _UNICAST
        or any(address in network for network in _RESERVED)
    ):
        return False
    return address.is_global and not address.is_multicast


def require_public_literal(host: str, port: int) -> None:
    """Refuse a host that is written as an address outside the public network. Names are not resolved.

    Raises:
        FetchFailed: it is one, and is not listed.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    if not is_public(host) and not is_listed(host, port):
        raise not_public(host, port)


def resolve(host: str, port: int) -> list[Endpoint]:
    """Return a host's addresses, so that a connection need not resolve the name again.

    Raises:
        FetchFailed: it has none, or one of them is not public and the host and port are not listed.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"The host {host} was not found.", code="host_not_found") from error
    endpoints = list(
        dict.fromkeys(
            Endpoint(family, str(place[0]), port)
            for family, _, _, _, place in addresses
            if family in (socket.AF_INET, socket.AF_INET6)
        )
    )
    if not endpoints:
        raise FetchFailed(f"The host {host} has no address.", code="host_not_found")
    # All are checked: the name's owner could list a private address beside a public one.
    if not is_listed(host, port) and not all(is_public(endpoint.address) for endpoint in endpoints):
        raise not_public(host, port)
    return endpoints[:MOST_ADDRESSES]


def not_public(host: str, port: int) -> FetchFailed:
    """Return a host's refusal. It does not name the address, which may belong to a private network."""
    place = host_and_port(host, port)
    return FetchFailed(
        f"{place} is not on the public network, so nothing is fetched from it. An administrator of the "
        f"installation can allow it with TRAINYARD_FETCH_ALLOW={place}.",
        code="address_refused",
    )
