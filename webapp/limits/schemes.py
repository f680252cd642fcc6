"""Refuses requests whose proxy is not trusted although it ends TLS.

Only the proxies in `TRAINYARD_TRUSTED_PROXIES` may report by X-Forwarded-Proto that a request came by https.
Through another one, each request would be redirected to the address that it has already, for ever.
"""

import logging
import re

from django.conf import settings

from jobs.errors import TrainyardError
from jobs.public_path import beside_public_path
from webapp.limits.refusals import Application, Receive, Scope, Send, refuse

log = logging.getLogger(__name__)
MOST_LOGGED = 100


class UntrustedProxy(TrainyardError):
    """A proxy that is not trusted reports https."""

    code, status = "untrusted_proxy", 400


class TrustSchemes:
    """Passes requests to `application`, except those that an unknown proxy calls secure."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        if settings.SECURE_SSL_REDIRECT and _claims_https(scope) and not _is_exempt(scope["path"]):
            address = (scope.get("client") or ("a socket",))[0]
            sentence = (
                f"The request came from {address} with X-Forwarded-Proto: https, but {address} is not in "
                "TRAINYARD_TRUSTED_PROXIES. If it is the proxy in front of Trainyard, add its address to "
                "this variable and restart the web server."
            )
            if address not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add(address)
                log.warning(sentence)
            await refuse(scope, send, UntrustedProxy(sentence))
            return
        await self._application(scope, receive, send)


def _claims_https(scope: Scope) -> bool:
    # The server has set the scheme already if the proxy is trusted.
    return scope["scheme"] != "https" and (b"x-forwarded-proto", b"https") in scope["headers"]


def _is_exempt(path: str) -> bool:
    place = beside_public_path(path).lstrip("/")
    return any(re.search(pattern, place) for pattern in settings.SECURE_REDIRECT_EXEMPT)
