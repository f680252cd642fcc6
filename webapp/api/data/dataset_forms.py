"""Reads the fields of the multipart forms with data."""

from typing import Any

from django.http import HttpRequest

from jobs.actions.data import datasets as actions
from jobs.actions.data.datasets import Roles
from jobs.errors import BadInput
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.problems import Problem
from webapp.api.media import form_text, form_texts
from webapp.http_errors import Malformed
from webapp.json_text import read_json


def read_roles(request: HttpRequest) -> Roles:
    """Return the roles of columns in the form."""
    target, task = (form_text(request, name, "") for name in ("target", "task"))
    features = ",".join(form_texts(request, "features"))
    columns = _read_columns(form_text(request, "columns", ""))
    return Roles.read(target, features, task, columns, form_text(request, "rows_without_target", ""))


def read_options(request: HttpRequest) -> ReadOptions:
    """Return the dialect, the image sizes and the share of damaged rows in the form."""
    dialect = _json_field("dialect", form_text(request, "dialect", ""), {})
    if not isinstance(dialect, dict):
        message = 'dialect must be an object such as {"delimiter": ";", "decimal": ","}'
        raise BadInput(message, [Problem("/dialect", message)])
    images = _json_field("images", form_text(request, "images", ""), {})
    if not isinstance(images, dict):
        message = 'images must be an object such as {"height": 64, "width": 64, "fit": "crop"}'
        raise BadInput(message, [Problem("/images", message)])
    return actions.read_options(dialect, form_text(request, "max_bad_share", ""), images)


def _json_field(name: str, text: str, default: object) -> Any:
    """Return the value in a form field that holds JSON."""
    if not text:
        return default
    try:
        return read_json(text.encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem(f"/{name}", error.message)]) from error


def _read_columns(text: str) -> list[dict[str, Any]]:
    """Return the field `columns`, a JSON list with objects that have name, role and type."""
    columns = _json_field("columns", text, [])
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        message = 'columns must be a list such as [{"name": "city", "type": "category"}]'
        raise BadInput(message, [Problem("/columns", message)])
    return columns
