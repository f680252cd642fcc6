"""Files that arrive in a form."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import HttpRequest
from pydantic import BaseModel

from jobs.contracts.problems import Problem
from jobs.errors import BadInput


@contextmanager
def file_on_disk(request: HttpRequest, field: str) -> Iterator[Path]:
    """Give an uploaded file as a path, for as long as the block runs.

    Raises:
        BadInput: the form holds no such file.
    """
    file = request.FILES.get(field)
    if file is None or isinstance(file, list):
        raise BadInput(f"The form lacks the file {field!r}.", [Problem(f"/{field}", "File required")])
    if isinstance(file, TemporaryUploadedFile):
        yield Path(file.temporary_file_path())
        return
    with tempfile.NamedTemporaryFile(prefix="upload-") as copy:
        for chunk in file.chunks():
            copy.write(chunk)
        copy.flush()
        yield Path(copy.name)


def either(body: type[BaseModel]) -> dict[str, Any]:
    """Return OpenAPI's description of a route that takes `body` as JSON, or a form with a file."""
    form = {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}},
    }
    content = {
        "application/json": {"schema": body.model_json_schema()},
        "multipart/form-data": {"schema": form},
    }
    return {"requestBody": {"required": True, "content": content}}
