"""The ASGI application: routes HTTP to Django and WebSockets to the consumers of `webapp.live`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import re_path

django.setup(set_prefix=False)  # loads the apps, so modules that use them are imported below

from webapp.handler import OneThreadHandler  # noqa: E402
from webapp.live import routing  # noqa: E402
from webapp.live.unknown_socket import close_unknown_socket  # noqa: E402

_nothing: Any = (
    close_unknown_socket  # Django's stubs do not allow an ASGI application as the target of a path
)

# A browser sends its cookie automatically, so cookie authentication checks the origin. A script sends a token
# explicitly and no Origin header, so token authentication accepts no cookie.
_pages = AllowedHostsOriginValidator(
    AuthMiddlewareStack(URLRouter([*routing.session_routes, re_path(r"", _nothing)]))
)
_sockets = URLRouter([*routing.token_routes, re_path(r"", _pages)])

application = ProtocolTypeRouter({"http": OneThreadHandler(), "websocket": _sockets})
