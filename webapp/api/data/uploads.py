"""Declares request bodies that bring files: multipart forms, and JSON with an address."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from jobs.actions.data.datasets import Roles
from jobs.errors import BadInput
from jobs.messages.code import MAX_FILES, MAX_NAME, MAX_PATH
from jobs.spec.data.addresses import MAX_LENGTH
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.credentials import CREDENTIAL
from jobs.spec.data.dialect import DialectRequest, ReadOptions
from jobs.spec.data.fetching import FetchMode, FetchRequest
from jobs.spec.data.images import ImageOptions
from jobs.spec.exports import STORED
from jobs.spec.problems import problems
from jobs.spec.sections.data import RowsWithoutTarget
from webapp.api.shapes import In, Text


class VersionIn(In):
    """A new version from a job's artifact."""

    artifact: str = Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64], description="Its digest.")


class RolesIn(In):
    """The column roles in a data set."""

    target: str = Field("", max_length=500, description="The column to predict.")
    features: list[Annotated[str, Field(max_length=500)]] = []
    task: str = ""
    columns: list[ColumnRequest] = Field([], max_length=20_000, description="Corrected roles and types.")

    def given_columns(self) -> list[dict[str, Any]]:
        """Return the corrections that were sent."""
        return [column.model_dump(exclude_none=True) for column in self.columns]


class VersionAddressIn(RolesIn):
    """A new data set version, whose file is fetched from an address."""

    project: str | None = None
    url: str = Field(
        max_length=MAX_LENGTH,
        description="`https://…`, `s3://bucket/key`, `gs://bucket/key`, or the path of a file.",
        examples=["https://data.example.org/people.csv"],
    )
    mode: FetchMode = Field(
        "copy", description="copy: the file is stored; reference: only until the version is ready."
    )
    credential: str = Field("", max_length=63, description="The name of a credential of the project.")
    file_name: str = Field(
        "", max_length=200, description="The name of the file; by default the last part of the address."
    )
    sha256: str = Field("", description="The digest that the file must have.")
    rows_without_target: RowsWithoutTarget = Field(
        "refuse", description="`leave_out`: rows of a table that have no target are left out."
    )
    dialect: DialectRequest = DialectRequest()
    images: ImageOptions = ImageOptions()
    max_bad_share: float = Field(
        0.0, ge=0, lt=1, description="Share of damaged rows that may be left out; 0 by default."
    )

    def fetch(self) -> FetchRequest:
        """Return from where the file comes."""
        names = ("url", "mode", "credential", "sha256", "file_name")
        return FetchRequest(**{name: getattr(self, name) for name in names})

    def roles(self) -> Roles:
        """Return the column roles."""
        columns = self.given_columns()
        return Roles.read(self.target, self.features, self.task, columns, self.rows_without_target)

    def reading(self) -> ReadOptions:
        """Return how the file is read."""
        return ReadOptions(dialect=self.dialect, max_bad_share=self.max_bad_share, images=self.images)


class ReadAgainIn(RolesIn):
    """Another reading of a version's file. Fields that are absent stay as for that version."""

    rows_without_target: RowsWithoutTarget | None = Field(
        None, description="`leave_out`: rows of a table that have no target are left out."
    )
    dialect: DialectRequest | None = Field(
        None,
        description="How the file is written. Earlier corrections of columns are then dropped, because "
        "columns may get other names and types.",
    )
    images: ImageOptions | None = None
    max_bad_share: float | None = Field(
        None, ge=0, lt=1, description="Share of damaged rows that may be left out."
    )

    def roles(self, before: Roles) -> Roles:
        """Return the column roles.

        Args:
            before: the version's roles.
        """
        columns = self.given_columns()
        requested = Roles.read(self.target, self.features, self.task, columns, self.rows_without_target or "")
        base = before if self.dialect is None else replace(before, columns=())
        chosen = base.changed_by(requested)
        rows = self.rows_without_target or before.rows_without_target
        return replace(chosen, rows_without_target=rows)


class DatasetAddressIn(VersionAddressIn):
    """A new data set, whose file is fetched from an address."""

    project: str
    slug: str
    name: Annotated[str, Field(max_length=200)] = ""
    description: Text = ""


class SourceIn(In):
    """A file in a code version."""

    path: str = Field(max_length=MAX_PATH, examples=["model.py"])
    text: str = Field(examples=["def build_model(hp):\n    ...\n"])


class CodeIn(In):
    """A code version as text. Forms may be larger, and may have archives."""

    project: str
    name: str = Field(
        "", max_length=MAX_NAME, description="Versions with one name follow each other; by default the path."
    )
    files: list[SourceIn] = Field(min_length=1, max_length=MAX_FILES)


def parse_body[T: In](body: Any, kind: type[T]) -> T:
    """Parse the JSON body if a request may also be a form.

    Raises:
        BadInput: it is invalid.
    """
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise BadInput("The request is not valid.", problems(error, body)) from error


BODIES: dict[str, TypeAdapter[Any]] = {
    "VersionIn": TypeAdapter(VersionIn),
    "DatasetAddressIn": TypeAdapter(DatasetAddressIn),
    "VersionAddressIn": TypeAdapter(VersionAddressIn),
    "CodeIn": TypeAdapter(CodeIn),
    "CredentialIn": CREDENTIAL,
}
"""JSON bodies that operations parse themselves, by the names of their schemas."""

FILE = {"type": "string", "contentMediaType": "application/octet-stream"}
TEXT = {"type": "string"}
FORMS: dict[str, dict[str, Any]] = {
    "DatasetUpload": {
        "type": "object",
        "title": "DatasetUpload",
        "description": "A new data set or version.",
        "required": [],
        "properties": {
            "project": TEXT,
            "slug": TEXT,
            "file": {
                "type": "array",
                "items": FILE,
                "description": "CSV, TSV, JSON Lines, Parquet, Arrow, NPZ, NPY, or a zip or tar of images. "
                "Several tables have one format and the same columns; their rows follow each other in this "
                "order.",
            },
            "upload": {
                "type": "array",
                "items": TEXT,
                "description": "Instead of `file`: the ids of uploads that have arrived in parts.",
            },
            "name": TEXT,
            "description": TEXT,
            "target": TEXT | {"description": "The column to predict."},
            "features": TEXT
            | {"description": 'Column names, separated by commas; one with a comma in quotes: `"dist, km"`.'},
            "task": TEXT,
            "columns": TEXT
            | {
                "description": 'Corrected roles and types: `[{"name": …, "role": …, "type": …}]` as JSON; '
                "`date_format` is how the texts of a column are dates, such as `%d/%m/%Y`."
            },
            "dialect": TEXT
            | {
                "description": "`{delimiter, encoding, decimal, header, header_rows, comments, skip_lines, "
                "sheet}` as JSON; others are detected."
            },
            "images": TEXT
            | {"description": "`{height, width, fit}` as JSON: the size of images, else proposed."},
            "max_bad_share": TEXT
            | {"description": "Share of damaged rows or images that may be left out; 0 by default."},
            "rows_without_target": TEXT
            | {
                "description": "`refuse` (the default): a table with rows that have no target is refused, "
                "with their number; `leave_out`: these rows are left out.",
                "enum": ["refuse", "leave_out"],
            },
            "sha256": TEXT | {"description": "The digest of the file; it is verified."},
        },
    },
    "CodeUpload": {
        "type": "object",
        "title": "CodeUpload",
        "description": "A version of code.",
        "required": ["project"],
        "properties": {
            "project": TEXT,
            "name": TEXT
            | {"description": "Versions with one name follow each other; by default that of the file."},
            "file": {
                "type": "array",
                "items": FILE,
                "description": "Python files and what belongs to them, or one zip, tar or tar.gz of them.",
            },
            "path": {
                "type": "array",
                "items": TEXT,
                "description": "The path of each `file` or of `text`, such as `layers/dense.py`.",
            },
            "text": TEXT | {"description": "Instead of `file`: one Python file, by default `model.py`."},
        },
    },
    "ModelUpload": {
        "type": "object",
        "title": "ModelUpload",
        "description": "A new version from a file.",
        "required": ["file"],
        "properties": {
            "file": FILE | {"description": f"A {STORED.suffix} file."},
            "sample": FILE
            | {
                "description": "A few rows that the model takes, for its validation and its gates: NPZ with "
                'one array for each input, or JSON as for a prediction, `{"instances": [row, …]}`. Without '
                "it, rows of several lengths and kinds of values are made up."
            },
            "code": TEXT
            | {
                "description": "The digest of code of the model's project, for a file with layers or other "
                "objects of its own. The validation finds out whether the file needs it."
            },
        },
    },
}
"""The schemas of the multipart forms, by name."""


def describe_body(form: str, json: str | None = None) -> dict[str, Any]:
    """Return the OpenAPI description for a request body that is a form, or a JSON schema named `json`."""
    content = {"multipart/form-data": {"schema": {"$ref": f"#/components/schemas/{form}"}}}
    if json is not None:
        content["application/json"] = {"schema": {"$ref": f"#/components/schemas/{json}"}}
    return {"requestBody": {"required": True, "content": content}}
