"""Reads https addresses, and http ones on listed hosts, with a connection to the checked address.

The libraries below fsspec follow redirects by themselves, and connect to an address in digits without asking
a resolver. So each request here is one connection, and each redirect is checked as the first address was.
"""

import http.client
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import urljoin

from jobs.errors import FetchFailed
from jobs.sources import guard
from jobs.sources.base import BLOCK, CONNECT_SECONDS, STALL_SECONDS, Source, plain
from jobs.spec.data.addresses import Address, BadAddress, host_and_port, parse
from jobs.spec.data.credentials import BasicCredential, BearerCredential, Credential

MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_REASONS = {
    401: "it asks for a credential, or refuses the one of the project",
    403: "it refuses access",
    404: "there is no such file",
    410: "the file is gone",
    429: "it asks to wait before the next request",
}


def require_allowed(address: Address) -> None:
    """Refuse plain HTTP to hosts that are not listed, and addresses in digits that are not public.

    Raises:
        FetchFailed: it is either.
    """
    if address.scheme == "http" and not guard.is_listed(address.host, address.port):
        place = host_and_port(address.host, address.port)
        raise FetchFailed(
            "Data are fetched over https only, since http lets others read and change them on the way. An "
            f"administrator of the installation can allow it for a host with TRAINYARD_FETCH_ALLOW={place}.",
            code="address_refused",
        )
    guard.require_public_literal(address.host, address.port)


def open_web(address: Address, credential: Credential | None) -> Source:
    """Open a file on a web server.

    Args:
        address: its address.
        credential: sent only to the host and port for which it was saved, also after redirects.

    Raises:
        FetchFailed: an address is refused, or the server does not send the file.
    """
    for _ in range(MOST_REDIRECTS + 1):
        require_allowed(address)
        response = _request(address, credential)
        if response.status not in _REDIRECTS:
            return _source(response)
        target = response.headers.get("Location", "")
        response.close()
        address = _redirected(address, target)
    raise FetchFailed(f"The server redirects more than {MOST_REDIRECTS} times.", code="too_many_redirects")


def _redirected(address: Address, target: str) -> Address:
    try:
        # A fragment is for browsers.
        redirected = parse(urljoin(address.url, target).partition("#")[0]) if target else None
    except (BadAddress, ValueError):
        redirected = None
    if redirected is None or redirected.scheme not in ("https", "http"):
        raise FetchFailed("The server redirects to an address that cannot be used.", code="address_refused")
    return redirected


def _request(address: Address, credential: Credential | None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=STALL_SECONDS)
    # Without a new connection by itself, which would resolve the name again.
    connection.auto_open = 0
    connection.sock = _connected(address)
    try:
        connection.request("GET", address.path, headers=_headers(address, credential))
        return connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise _broken(error) from error


def _headers(address: Address, credential: Credential | None) -> dict[str, str]:
    headers = {
        "Host": host_and_port(address.host, address.port, address.scheme),
        "User-Agent": "Trainyard",
        "Accept": "*/*",
        # The file's own bytes, so that their digest and their number match the source.
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    if credential is not None and credential.fits(address):
        headers["Authorization"] = _authorization(credential)
    return headers


def _authorization(credential: Credential) -> str:
    match credential:
        case BearerCredential():
            return f"Bearer {credential.token.get_secret_value()}"
        case BasicCredential():
            pair = f"{credential.user}:{credential.password.get_secret_value()}"
            return f"Basic {b64encode(pair.encode()).decode()}"
    raise FetchFailed("This kind of credential is not for web servers.", code="credential")


def _connected(address: Address) -> socket.socket:
    """Return a connection to one of the host's checked addresses, with TLS for https.

    Raises:
        FetchFailed: none of them accepts it, or the certificate is not valid.
    """
    for endpoint in guard.resolve(address.host, address.port):
        opened = socket.socket(endpoint.family, socket.SOCK_STREAM)
        opened.settimeout(CONNECT_SECONDS)
        try:
            opened.connect((endpoint.address, endpoint.port))
        except OSError:
            opened.close()
            continue
        try:
            return _with_tls(opened, address)
        except OSError:
            opened.close()
            raise
    raise FetchFailed(
        f"{host_and_port(address.host, address.port)} accepts no connection.", code="connection_failed"
    )


def _with_tls(opened: socket.socket, address: Address) -> socket.socket:
    if address.scheme == "https":
        try:
            opened = ssl.create_default_context().wrap_socket(opened, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            opened.close()
            raise FetchFailed(
                f"The certificate of {address.host} is not valid: {error.verify_message}.", code="certificate"
            ) from error
        except (ssl.SSLError, TimeoutError, ConnectionError) as error:
            opened.close()
            raise FetchFailed(
                f"No encrypted connection to {address.host} is possible.", code="connection_failed"
            ) from error
    opened.settimeout(STALL_SECONDS)
    return opened


def _source(response: http.client.HTTPResponse) -> Source:
    if response.status != http.client.OK:
        response.close()
        reason = _REASONS.get(response.status, "")
        more = f": {reason}" if reason else ""
        raise FetchFailed(f"The server answered {response.status}{more}.", code="source_refused")
    if response.headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
        response.close()
        raise FetchFailed("The server sends the file in another encoding.", code="source_refused")
    return Source(
        size=response.length,
        blocks=_blocks(response),
        etag=plain(response.headers.get("ETag"), 200),
        modified=plain(response.headers.get("Last-Modified"), 64),
    )


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    with response:
        while True:
            try:
                # At most one receive: a server that sends little must not keep the reader from its checks.
                block = response.read1(BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise _broken(error) from error
            if not block:
                return
            yield block


def _broken(error: Exception) -> FetchFailed:
    """Describe a broken connection. The error's message is left out: it may contain the server's bytes."""
    if isinstance(error, TimeoutError):
        return FetchFailed(f"The source sent nothing for {STALL_SECONDS:.0f} seconds.", code="stalled")
    if isinstance(error, OSError | http.client.IncompleteRead):
        return FetchFailed("The connection broke before the end of the file.", code="connection_lost")
    return FetchFailed("The server does not speak HTTP.", code="source_refused")
