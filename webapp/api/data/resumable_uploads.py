"""Operations on uploads that arrive in parts, by the tus protocol 1.0 (https://tus.io/protocols/resumable-upload).

Of the extensions it has creation, termination, expiration and checksum. `webapp.limits.parts` receives the
parts.
"""

import base64
import binascii
from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import http_date
from ninja import Query, Router
from ninja.responses import Status

from jobs import access, upload_files
from jobs.actions.data import resumable_uploads as actions
from jobs.answers.data.resumable_uploads import ResumableUploadOut
from jobs.errors import BadInput, Conflict, TrainyardError
from jobs.public_path import beside_public_path
from jobs.queries.data import resumable_uploads as queries
from jobs.spec.problems import Problem
from webapp.api.auth import actor, needs
from webapp.api.paging import Page, Paging, paginate
from webapp.http_errors import TooLarge, UnsupportedMediaType
from webapp.limits import parts

router = Router()
PART_TYPE = "application/offset+octet-stream"
MAX_DIGITS = 18
MAX_NAME = 200


def _header(name: str, description: str, *, is_required: bool = True) -> dict[str, Any]:
    schema = {"type": "string"}
    return {
        "in": "header",
        "name": name,
        "required": is_required,
        "description": description,
        "schema": schema,
    }


TUS = _header("Tus-Resumable", "1.0.0")
BEGIN = {
    "parameters": [
        TUS,
        _header("Upload-Length", "Bytes of the whole file."),
        _header("Upload-Metadata", "`filename <base64>,project <base64>`"),
    ]
}
PART = {
    "parameters": [
        TUS,
        _header("Upload-Offset", "Bytes received so far, as HEAD returns them."),
        _header("Upload-Checksum", "`sha256 <base64>` or `sha1 <base64>` of this part.", is_required=False),
    ],
    "requestBody": {
        "required": True,
        "content": {
            PART_TYPE: {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
        },
    },
}


class UnknownVersion(TrainyardError):
    """The client speaks another protocol version."""

    code, status = "unknown_tus_version", 412


@router.get("/uploads", response=Page[ResumableUploadOut])
def list_uploads(
    request: HttpRequest, paging: Query[Paging], project: str | None = None
) -> Page[ResumableUploadOut]:
    """List the caller's unfinished uploads, and all in the projects that the caller manages."""
    home = access.get_project(actor(request), project) if project else None
    rows = queries.uploads_of_project(actor(request), home)
    return paginate(
        Page[ResumableUploadOut],
        rows,
        paging,
        queries.upload_out,
        sorts={"created": "created"},
        default="-created",
    )


@router.api_operation(["OPTIONS"], "/uploads", auth=needs("read", "write"), include_in_schema=False)
def describe_uploads(request: HttpRequest) -> HttpResponse:
    """Return the supported extensions and sizes."""
    del request
    headers = {
        "Tus-Extension": "creation,termination,expiration,checksum",
        "Tus-Checksum-Algorithm": ",".join(upload_files.CHECKSUMS),
        "Tus-Max-Size": str(settings.TRAINYARD_MAX_RESUMABLE_BYTES),
    }
    return HttpResponse(status=204, headers=headers)


@router.post("/uploads", response={201: ResumableUploadOut}, openapi_extra=BEGIN)
def begin_upload(request: HttpRequest, response: HttpResponse) -> Status[ResumableUploadOut]:
    """Begin an upload by the tus protocol. `Location` is the address to which the parts are sent by PATCH.

    HEAD of that address returns how many bytes have been received. When all have, create a data set or a
    version with the `id` as `upload`.
    """
    _require_tus(request)
    length = _read_number(request, "Upload-Length")
    if length > settings.TRAINYARD_MAX_RESUMABLE_BYTES:
        limit = settings.TRAINYARD_MAX_RESUMABLE_BYTES
        raise TooLarge(f"The limit of an upload is {limit:,} bytes; this one has {length:,}.")
    metadata = _read_metadata(request.headers.get("Upload-Metadata", ""))
    project = access.get_project(actor(request), metadata["project"], access.Action.WRITE)
    upload = actions.begin(project, name=metadata["filename"], length=length, by=actor(request))
    response["Location"] = beside_public_path(f"/api/v1/uploads/{upload.pk}")
    response["Upload-Expires"] = _expiry_date(upload.until)
    return Status(201, queries.upload_out(upload))


@router.get("/uploads/{upload_id}", response=ResumableUploadOut)
def get_upload(request: HttpRequest, upload_id: str) -> ResumableUploadOut:
    """Return an unfinished upload."""
    return queries.upload_out(access.get_upload(actor(request), upload_id))


@router.api_operation(["HEAD"], "/uploads/{upload_id}", auth=needs("read", "write"), include_in_schema=False)
def find_offset(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Return the number of received bytes, as headers."""
    upload = access.get_upload(actor(request), upload_id)
    _require_tus(request)
    if upload.artifact_id is None:
        upload_files.require_here(upload.pk)
    upload_files.wait_for_part(upload.pk)
    metadata = f"filename {_encode_text(upload.name)},project {_encode_text(upload.project.slug)}"
    return HttpResponse(
        status=200,
        headers={
            "Upload-Offset": str(queries.received_bytes(upload)),
            "Upload-Length": str(upload.length),
            "Upload-Metadata": metadata,
            "Upload-Expires": _expiry_date(upload.until),
            "Cache-Control": "no-store",
        },
    )


@router.patch("/uploads/{upload_id}", response={204: None}, openapi_extra=PART)
def send_part(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Append a part to an upload. Received bytes are kept if the connection breaks."""
    upload = access.get_upload(actor(request), upload_id)
    _require_tus(request)
    if request.content_type != PART_TYPE:
        raise UnsupportedMediaType(f"The body has the type {request.content_type}; send {PART_TYPE}.")
    offset, size = _read_number(request, "Upload-Offset"), request.headers.get("Content-Length", "")
    if queries.is_moved(upload):
        raise Conflict(f"All bytes of {upload.name!r} have been received.")
    upload_files.require_here(upload.pk)
    if size.isdecimal() and offset + int(size) > upload.length:
        raise TooLarge(f"The upload has {upload.length:,} bytes, and this part goes beyond them.")
    header = request.headers.get("Upload-Checksum")
    checksum = None if header is None else upload_files.Checksum.read(header)
    part = upload_files.Part(upload.pk, offset=offset, length=upload.length, checksum=checksum)
    parts.expect(request, part)
    actions.extend(upload.pk)
    return HttpResponse(status=204, headers={"Upload-Expires": _expiry_date(upload.until)})


@router.delete("/uploads/{upload_id}", response={204: None})
def end_upload(request: HttpRequest, upload_id: str) -> Status[None]:
    """Delete an unfinished upload. The answer is 423 while a part arrives."""
    upload = access.get_upload(actor(request), upload_id)
    upload_files.wait_for_part(upload.pk)
    actions.terminate(upload)
    return Status(204, None)


def _require_tus(request: HttpRequest) -> None:
    if (version := request.headers.get("Tus-Resumable")) != parts.TUS_VERSION:
        reason = "is missing" if version is None else f"is {version[:20]!r}"
        raise UnknownVersion(f"The header Tus-Resumable {reason}; send {parts.TUS_VERSION}.")


def _read_number(request: HttpRequest, name: str) -> int:
    text = request.headers.get(name)
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > MAX_DIGITS:
        raise BadInput(f"The header {name} must be a number of bytes.")
    return int(text)


def _read_metadata(text: str) -> dict[str, str]:
    """Return the decoded values in the header `Upload-Metadata`.

    Raises:
        BadInput: the header is malformed, or lacks a name.
    """
    values = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            values[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise BadInput(f"Upload-Metadata: the value of {name[:40]!r} is not base64 of UTF-8.") from error
    for name in ("filename", "project"):
        if not values.get(name) or "\0" in values[name] or len(values[name]) > MAX_NAME:
            message = f"Upload-Metadata must have {name!r}, with 1 to {MAX_NAME} characters in base64."
            raise BadInput(message, [Problem(f"/{name}", message)])
    return values


def _encode_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _expiry_date(moment: datetime) -> str:
    return http_date(moment.timestamp())
