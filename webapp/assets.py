"""Static files: their storage in production, and the middleware that sends them."""

from contextlib import closing
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise is untyped
    """Hashes and compresses static files, and rewrites import paths in ES modules."""

    support_js_module_import_aggregation = True
    # Each pass settles one level of imports, and Django's limit is 5.
    max_post_process_passes = 30


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise is untyped
    """Sends static files as whole responses.

    WhiteNoise streams them with synchronous iterators. Under ASGI, Django reads such a stream to its end
    before it sends the first byte, and warns about every file.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the response for a file, which may be partial, or empty if it did not change."""
        served = static_file.get_response(request.method, request.META)
        content = b""
        if served.file is not None:
            with closing(served.file) as file:
                content = file.read()
        response = HttpResponse(content, status=int(served.status))
        del response["Content-Type"]
        for name, value in served.headers:
            response[name] = value
        return response
