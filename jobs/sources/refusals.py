"""Refuses addresses that no fetch could use, before one is stored."""

from jobs.sources import files, gcs, web
from jobs.spec.data.addresses import Address


def require_allowed(address: Address) -> None:
    """Refuse an address for which no connection is needed to see that it is not allowed.

    Raises:
        FetchFailed: it is plain HTTP to a host that is not listed, an address in digits that is not public, a
            file outside of the allowed folders, or of a kind that is not installed.
    """
    match address.scheme:
        case "file":
            files.require_allowed(address)
        case "gs":
            gcs.require_installed()
        case "https" | "http":
            web.require_allowed(address)
