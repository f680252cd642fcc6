"""Opens the source at an address."""

from jobs.sources import files, gcs, s3, web
from jobs.sources.base import Source
from jobs.spec.data.addresses import Address
from jobs.spec.data.credentials import Credential


def open_source(address: Address, credential: Credential | None) -> Source:
    """Open the data at an address.

    Raises:
        FetchFailed: they cannot be read.
    """
    match address.scheme:
        case "s3":
            return s3.open_s3(address, credential)
        case "gs":
            return gcs.open_gcs(address, credential)
        case "file":
            return files.open_file(address)
    return web.open_web(address, credential)
