"""The ASGI application: routes HTTP to Django and WebSockets to `webapp.live`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

# Loads the apps: modules that import models can only be imported after it.
django.setup()

from webapp.accounts.named_cookies import NamedCookies  # noqa: E402
from webapp.handler import OneThreadHandler  # noqa: E402
from webapp.limits.bodies import LimitBodies  # noqa: E402
from webapp.limits.parts import ReceiveParts  # noqa: E402
from webapp.limits.requests import LimitRequests  # noqa: E402
from webapp.limits.schemes import TrustSchemes  # noqa: E402
from webapp.limits.threads import ThreadPlaces  # noqa: E402
from webapp.live import routing  # noqa: E402
from webapp.live.origin import OwnOrigin  # noqa: E402
from webapp.live.unknown_socket import close_unknown_socket  # noqa: E402
from webapp.public_path import WithoutPublicPath, WithPublicPath  # noqa: E402

# Any: Django's stubs do not allow an ASGI application as the target of a path.
_unknown: Any = close_unknown_socket

# A browser sends its cookie automatically, so cookie authentication checks the origin. A script sends a token
# explicitly and no Origin header, so token authentication accepts no cookie.
_pages: Any = OwnOrigin(AuthMiddlewareStack(URLRouter([*routing.session_routes, re_path(r"", _unknown)])))
# Any: the stubs of Django's handler describe the same messages with other types.
_django: Any = WithPublicPath(OneThreadHandler(ThreadPlaces().turn))
_sockets = URLRouter([*routing.token_routes, re_path(r"", _pages)])

_http = TrustSchemes(LimitRequests(LimitBodies(ReceiveParts(_django))))

application = WithoutPublicPath(NamedCookies(ProtocolTypeRouter({"http": _http, "websocket": _sockets})))
