"""Middleware: refuses forms in other encodings than UTF-8."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from webapp.http_errors import UnsupportedMediaType
from webapp.pages.errors import show_error

Handler = Callable[[HttpRequest], HttpResponse]
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def forms_in_utf8(handler: Handler) -> Handler:
    """Refuse forms in other encodings. Django would fail at some with an unexpected error."""

    def respond(request: HttpRequest) -> HttpResponse:
        charset = (request.content_params or {}).get("charset", "utf-8")
        if request.content_type not in FORMS or charset.lower() in ("utf-8", "utf8"):
            return handler(request)
        return show_error(request, UnsupportedMediaType("Send forms in UTF-8."))

    return respond
