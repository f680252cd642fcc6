"""The ASGI entry: HTTP to Django, WebSockets to the consumers of `webapp.live`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import re_path

django.setup(set_prefix=False)  # loads the apps; what uses them may be imported only after it

from webapp.handler import OneThreadHandler  # noqa: E402
from webapp.live import routing  # noqa: E402
from webapp.live.refuse import refuse  # noqa: E402

_nothing: Any = refuse  # Django's stubs know no ASGI application as the target of a path

# A browser sends the cookie of its own accord, so the cookie's road checks the origin. A script sends a
# token of its own will and no Origin at all: its road takes no cookie.
_pages = AllowedHostsOriginValidator(
    AuthMiddlewareStack(URLRouter([*routing.session_routes, re_path(r"", _nothing)]))
)
_sockets = URLRouter([*routing.token_routes, re_path(r"", _pages)])

application = ProtocolTypeRouter({"http": OneThreadHandler(), "websocket": _sockets})
