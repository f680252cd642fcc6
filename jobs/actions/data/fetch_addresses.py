"""Checks fetch addresses, and encrypts them: an address can contain a secret."""

from jobs import upload_formats
from jobs.actions.data import credentials
from jobs.errors import BadInput, FetchFailed
from jobs.keys import sealing
from jobs.models import Credential as CredentialRow
from jobs.models import DatasetVersion, Fetch, Project
from jobs.sources import refusals
from jobs.spec.data import addresses
from jobs.spec.data.addresses import Address, BadAddress
from jobs.spec.data.fetching import FetchRequest
from jobs.spec.problems import Problem
from jobs.store import is_digest

NAME_LENGTH = 200


def check_address(project: Project, request: FetchRequest) -> Address:
    """Return a request's address, as far as it can be checked without a connection."""
    try:
        address = addresses.parse(request.url.strip())
        refusals.require_allowed(address)
        upload_formats.format_by_name(request.file_name or address.name)
    except BadAddress as error:
        raise _bad("/url", str(error)) from error
    except FetchFailed as error:
        raise _bad("/url", error.message) from error
    except BadInput as error:
        raise _bad("/file_name" if request.file_name else "/url", error.message) from error
    if len(request.file_name) > NAME_LENGTH or not request.file_name.isprintable():
        raise _bad("/file_name", f"give a name of up to {NAME_LENGTH} characters, without control characters")
    if request.sha256 and not is_digest(request.sha256.lower()):
        raise _bad("/sha256", "a sha256 digest has 64 hexadecimal digits")
    if request.credential:
        _require_fitting(project, request.credential, address)
    return address


def _require_fitting(project: Project, name: str, address: Address) -> None:
    row = CredentialRow.objects.filter(project=project, name=name).first()
    if row is None:
        raise _bad("/credential", f"project {project} has no credential {name!r}")
    try:
        fits = credentials.secret_of(row).fits(address)
    except sealing.Unreadable as error:
        raise _bad("/credential", unreadable_message(name)) from error
    if not fits:
        where = f" at {row.place}" if row.place else ""
        raise _bad("/credential", f"{name!r} is for {row.kind}{where}, not for this address")


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])


def unreadable_message(name: str) -> str:
    """Return why a credential's secrets cannot be used."""
    return f"credential {name!r} cannot be read, because the secret key has changed: save it again"


def seal_address(url: str, version: DatasetVersion) -> str:
    """Return the encrypted address for a version's fetch."""
    return sealing.seal(url, _purpose(version.pk))


def url_of(row: Fetch) -> str:
    """Return the whole address.

    Raises:
        FetchFailed: the secret key has changed.
    """
    try:
        return sealing.unseal(row.sealed_url, _purpose(row.version_id))
    except sealing.Unreadable as error:
        raise FetchFailed("The address cannot be read, because the secret key has changed.") from error


def reseal_all() -> int:
    """Encrypt all addresses with the present secret key. Return how many cannot be decrypted."""
    lost = 0
    for row in Fetch.objects.select_for_update().order_by("pk"):
        try:
            row.sealed_url = sealing.reseal(row.sealed_url, _purpose(row.version_id))
        except sealing.Unreadable:
            lost += 1
        else:
            row.save(update_fields=["sealed_url"])
    return lost


def _purpose(version: int) -> str:
    return f"address {version}"
