"""Creates data sets and their versions from bundled data and uploads, and records their profiles.

Nothing here parses a user's file: it is stored as bytes, and a profile job opens it in a runner.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

from django.db import IntegrityError, transaction
from django.db.models import Max
from pydantic import Field, TypeAdapter, ValidationError

from jobs import access, upload_formats
from jobs.actions.audit import audit
from jobs.actions.data import uploads
from jobs.actions.data.profiles import queue_profile
from jobs.actions.people import quotas
from jobs.actions.storage import artifacts
from jobs.actions.storage.deletions import slug_taken
from jobs.errors import BadInput, Conflict
from jobs.models import Artifact, Dataset, DatasetVersion, FurtherFile, Project, User
from jobs.queries.data.datasets import profile_jobs
from jobs.spec.data.columns import LONE_ROLES, WEIGHTS, ColumnRequest
from jobs.spec.data.dialect import DialectRequest, ReadOptions
from jobs.spec.data.images import ImageOptions
from jobs.spec.name_lists import read_names
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.data import RowsWithoutTarget, Slug, Task
from jobs.store import sha256_of, store

BUNDLED: dict[str, tuple[str, str]] = {
    "digits": ("Handwritten digits", "1,797 grey images of 8 × 8 pixels, ten classes."),
    "breast_cancer": ("Breast cancer", "569 biopsies with 30 measures each: malignant or benign."),
    "wine": ("Wine", "178 wines with 13 chemical measures each, from three cultivars."),
    "iris": ("Iris", "150 flowers with four measures each, of three species."),
    "diabetes": (
        "Diabetes",
        "442 patients with ten measures each and the progress of the disease: a number.",
    ),
}
"""Name and description by slug. scikit-learn's wheel contains the data, so no network is needed."""


MOST_FILES = 100
"""How many files a version may have."""
SLUG: TypeAdapter[str] = TypeAdapter(Slug)
COLUMNS = TypeAdapter(Annotated[list[ColumnRequest], Field(max_length=20_000)])


def check_slug(slug: str, pointer: str = "/slug") -> str:
    """Return a data set's slug.

    Args:
        slug: as it was sent.
        pointer: its field's JSON pointer.

    Raises:
        BadInput: `slug` is not a valid slug.
    """
    try:
        return SLUG.validate_python(slug)
    except ValidationError as error:
        message = f"{slug!r}: use up to 63 lower-case letters, digits, - and _, with a letter or digit first"
        raise BadInput(message, [Problem(pointer, message)]) from error


@dataclass(frozen=True)
class Roles:
    """The columns' roles. The profile job infers those that are None."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None
    columns: tuple[ColumnRequest, ...] = ()
    rows_without_target: RowsWithoutTarget = "refuse"

    @classmethod
    def read(
        cls,
        target: str,
        features: str | Sequence[str],
        task: str,
        columns: Sequence[Mapping[str, Any]] = (),
        rows_without_target: str = "",
    ) -> "Roles":
        """Parse the roles from text, as forms send them.

        Args:
            target: name of the target column, or empty.
            features: names of the features, or empty; as a text, see `read_names`.
            task: kind of prediction, or empty.
            columns: corrected roles and types of columns.
            rows_without_target: whether rows without a target are refused or left out, or empty.

        Raises:
            BadInput: there is no such task, role or type, or no such choice, or a quote is not closed.
        """
        if task and task not in get_args(Task):
            tasks = ", ".join(get_args(Task))
            raise BadInput(f"there is no task {task!r}", [Problem("/task", f"choose one of {tasks}")])
        if rows_without_target and rows_without_target not in get_args(RowsWithoutTarget):
            message = f"choose one of {', '.join(get_args(RowsWithoutTarget))}"
            raise BadInput(
                "Rows without a target have no such choice.", [Problem("/rows_without_target", message)]
            )
        try:
            names = read_names(features) if isinstance(features, str) else features
        except ValueError as error:
            raise BadInput("The features cannot be read.", [Problem("/features", str(error))]) from error
        chosen = tuple(name.strip() for name in names if name.strip())
        requests = _column_requests(columns)
        without_target: RowsWithoutTarget = "leave_out" if rows_without_target == "leave_out" else "refuse"
        return cls(target.strip() or None, chosen or None, task or None, requests, without_target)  # type: ignore[arg-type]

    @classmethod
    def requested_for(cls, version: DatasetVersion) -> "Roles":
        """Return the roles with which a version was requested."""
        request = version.request
        return cls.read(
            request.get("target", ""),
            request.get("features", ()),
            request.get("task", ""),
            stored_columns(version),
            request.get("rows_without_target", ""),
        )

    def changed_by(self, changes: "Roles") -> "Roles":
        """Return these roles with those that are set in `changes`, and its corrections of single columns.

        A column loses the target, or another role that only one column has, to the one that now gets it.
        """
        roles = {column.role for column in changes.columns}
        gives_target = changes.target is not None or "target" in roles
        lost = {role for role in LONE_ROLES if role in roles} | ({"target"} if gives_target else set())
        corrected = {changes.target, *(column.name for column in changes.columns)}
        unchanged = tuple(
            column for column in self.columns if column.name not in corrected and column.role not in lost
        )
        return replace(
            self,
            target=changes.target if gives_target else self.target,
            features=changes.features or self.features,
            task=changes.task or self.task,
            columns=(*unchanged, *changes.columns),
        )

    def with_change(self, change: ColumnRequest) -> "Roles":
        """Return these roles with the fields that are set in a change of one column."""
        before = next((column for column in self.columns if column.name == change.name), None)
        changed = (before or ColumnRequest(name=change.name)).changed_by(change)
        return self.changed_by(Roles(columns=(changed,)))

    def as_request(self) -> dict[str, Any]:
        """Return the roles that are set, as JSON."""
        roles = {
            "target": self.target,
            "features": list(self.features or ()),
            "task": self.task,
            "columns": [column.model_dump(mode="json", exclude_none=True) for column in self.columns],
            "rows_without_target": "leave_out" if self.rows_without_target == "leave_out" else None,
        }
        return {name: value for name, value in roles.items() if value}


def stored_columns(version: DatasetVersion) -> list[dict[str, Any]]:
    """Return the corrections of columns with which a version was requested, as JSON.

    Earlier releases accepted that numbers and dates are merged like categories; such versions have failed.
    """
    columns = version.request.get("columns", ())
    return [
        {name: value for name, value in column.items() if name != "merge_labels"}
        if ColumnRequest.model_validate(column).merges_no_words
        else column
        for column in columns
    ]


def _column_requests(columns: Sequence[Mapping[str, Any]]) -> tuple[ColumnRequest, ...]:
    try:
        requests = COLUMNS.validate_python(list(columns))
    except ValidationError as error:
        field_problems = problems(error, list(columns), "/columns")
        raise BadInput("The columns are not valid.", field_problems) from error
    for number, request in enumerate(requests):
        if request.role == "weight" and request.type is not None and request.type not in WEIGHTS:
            message = (
                f"{request.name!r} has the role weight, so its type is number or integer, not {request.type}"
            )
            raise BadInput(message, [Problem(f"/columns/{number}/type", message)])
        if request.merges_no_words:
            kind = request.type or ("date" if request.date_format is not None else "number")
            message = (
                f"{request.name!r} is given the type {kind}, and merge_labels is for categories; leave one "
                "of them out"
            )
            raise BadInput(message, [Problem(f"/columns/{number}/merge_labels", message)])
    counts = Counter(request.name for request in requests)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise BadInput("A column is named twice.", [Problem("/columns", f"{repeated[0]!r} is named twice")])
    for role in LONE_ROLES:
        if len(names := [request.name for request in requests if request.role == role]) > 1:
            message = f"at most one column has the role {role}; now it is {', '.join(names[:20])}"
            raise BadInput(f"Several columns have the role {role}.", [Problem("/columns", message)])
    return tuple(requests)


@dataclass(frozen=True)
class Upload:
    """An uploaded file: its temporary path, its name, and the digest that the sender gave."""

    path: Path
    name: str
    sha256: str | None = None


@dataclass(frozen=True)
class StoredUpload:
    """An upload in the store: its artifact, its format and its file name.

    Attributes:
        artifact: its first file.
        source: the format of all its files.
        name: the first file's name.
        further: artifact and name of each further file, in the order in which they are read.
        code: the code that has made it, and the job: `digest`, `entry`, `job`; None for a person's file.
    """

    artifact: Artifact
    source: str
    name: str
    further: tuple[tuple[Artifact, str], ...] = ()
    code: Mapping[str, Any] | None = None


def combine_uploads(files: Sequence[StoredUpload]) -> StoredUpload:
    """Combine several uploaded files, in order, into one upload.

    Raises:
        BadInput: they have different formats, or are too many.
    """
    first, *others = files
    if len(files) > MOST_FILES:
        raise _bad_file(f"a version has at most {MOST_FILES} files, not {len(files)}")
    if others and first.source == "images":
        raise _bad_file("an archive comes alone: put all images or tables into one zip or tar")
    for other in others:
        if other.source != first.source:
            here, there = map(upload_formats.format_label, (first.source, other.source))
            formats = f"{there} data, and {first.name!r} has {here} data"
            raise _bad_file(f"{other.name!r} has {formats}; the files of a version have one format")
    return replace(first, further=tuple((other.artifact, other.name) for other in others))


def _bad_file(message: str) -> BadInput:
    return BadInput(message, [Problem("/file", message)])


def read_options(
    dialect: Mapping[str, Any], max_bad_share: str = "", images: Mapping[str, Any] | None = None
) -> ReadOptions:
    """Parse how a file is to be read, as forms send it; empty texts are left out.

    Raises:
        BadInput: a field is unknown or has an invalid value.
    """
    parts = {"dialect": dialect, "images": images or {}}
    body: dict[str, Any] = {
        part: {name: value for name, value in settings.items() if value not in ("", None)}
        for part, settings in parts.items()
    }
    if max_bad_share.strip():
        body["max_bad_share"] = max_bad_share
    try:
        return ReadOptions.model_validate(body)
    except ValidationError as error:
        raise BadInput("The file cannot be read in this way.", problems(error, body)) from error


def store_upload(upload: Upload, project: Project | None) -> StoredUpload:
    """Check an upload and copy it to the store. This is slow, so it must not run in a transaction.

    Raises:
        BadInput: the file does not match its extension or the given digest.
        QuotaReached: the file does not fit into its project's disk quota.
    """
    if project is not None:
        quotas.require_room_on_disk(project, upload.path.stat().st_size)
    source = upload_formats.format_of_upload(upload.path, upload.name)
    if upload.sha256 and (digest := sha256_of(upload.path).digest) != upload.sha256.lower():
        message = f"the received file has sha256 {digest}, not {upload.sha256.lower()}"
        raise BadInput(message, [Problem("/sha256", message)])
    return StoredUpload(artifacts.adopt(store().put(upload.path)), source, Path(upload.name).name[:200])


def ensure_bundled() -> list[DatasetVersion]:
    """Create missing bundled data sets, with their profile jobs. Any process may call it."""
    return [_ensure_bundled_one(slug, name, description) for slug, (name, description) in BUNDLED.items()]


def _ensure_bundled_one(slug: str, name: str, description: str) -> DatasetVersion:
    with transaction.atomic():
        dataset, _ = Dataset.objects.get_or_create(
            project=None,
            slug=slug,
            defaults={"name": name, "description": description, "source": Dataset.Source.BUNDLED},
        )
        request = {"source": "bundled", "bundled": slug}
        version, _ = dataset.versions.get_or_create(number=1, defaults={"request": request})
        # A job in any state counts, so that a failed one is not repeated at every start.
        profiles = profile_jobs([version])
        if version.state == DatasetVersion.State.PREPARING and not profiles.exists():
            queue_profile(version, by=None)
    return version


def create(
    project: Project,
    *,
    slug: str,
    stored: StoredUpload,
    by: User,
    name: str = "",
    description: str = "",
    roles: Roles | None = None,
    reading: ReadOptions | None = None,
) -> DatasetVersion:
    """Create a data set from an upload. Its first version is `preparing` until a worker has read it.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the slug is taken.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    access.require(by, project, access.Action.WRITE)
    return create_with(
        project,
        slug=slug,
        by=by,
        name=name,
        description=description,
        first=lambda dataset: new_version(dataset, stored, roles or Roles(), reading or ReadOptions(), by=by),
    )


def create_with(
    project: Project,
    *,
    slug: str,
    by: User,
    name: str,
    description: str,
    first: Callable[[Dataset], DatasetVersion],
) -> DatasetVersion:
    """Create a data set, and return its first version, which `first` makes in the same transaction.

    Raises:
        Conflict: the slug is taken.
    """
    try:
        with transaction.atomic():
            dataset = Dataset.objects.create(
                project=project,
                slug=slug,
                name=name or slug,
                description=description,
                source=Dataset.Source.UPLOAD,
                created_by=by,
            )
            return first(dataset)
    except IntegrityError as error:
        if (existing := Dataset.everything.get(project=project, slug=slug)).deletion_id is not None:
            raise Conflict(slug_taken(f"A data set with the slug {slug!r}", existing)) from error
        raise Conflict(f"{project.slug} already has a data set {slug!r}: add a version to it") from error


def add_version(
    dataset: Dataset,
    *,
    stored: StoredUpload,
    by: User,
    roles: Roles | None = None,
    reading: ReadOptions | None = None,
) -> DatasetVersion:
    """Add an uploaded data set's next version.

    Raises:
        Forbidden: `by` may not write in the project, or the data set is bundled.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    access.require(by, dataset.project, access.Action.WRITE)
    return new_version(dataset, stored, roles or Roles(), reading or ReadOptions(), by=by)


def set_roles(
    version: DatasetVersion,
    roles: Roles,
    *,
    by: User,
    dialect: DialectRequest | None = None,
    images: ImageOptions | None = None,
    max_bad_share: float | None = None,
) -> DatasetVersion:
    """Change roles, types, dialect or size in a new version with the same file.

    Args:
        version: its file is read again.
        roles: the columns' roles.
        by: who changes them.
        dialect: how the file is written; None as for `version`.
        images: the images' size; None as for `version`.
        max_bad_share: the share of rows that may be left out; None as for `version`.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the data set is bundled.
        QuotaReached: the project has too many uploads in progress.
    """
    dataset = version.dataset
    access.require(by, dataset.project, access.Action.WRITE)
    if dataset.project is None:
        raise Conflict(
            f"{dataset.slug} is bundled and cannot be changed: choose the roles in the experiment instead"
        )
    if version.upload is None:
        raise Conflict(f"{version} has no file yet: its fetch is not complete")
    further = version.further_files.select_related("artifact")
    stored = StoredUpload(
        version.upload,
        version.request["source"],
        version.request.get("file", ""),
        tuple((file.artifact, name) for file, name in zip(further, version.files[1:], strict=True)),
        version.request.get("code"),
    )
    reading = changed_reading(version, dialect, images, max_bad_share)
    with transaction.atomic():
        if dataset.project is not None:
            # A worker reads the file again.
            uploads.require_fewer(quotas.lock_project(dataset.project))
        return new_version(dataset, stored, roles, reading, by=by)


def changed_reading(
    version: DatasetVersion,
    dialect: DialectRequest | None,
    images: ImageOptions | None,
    max_bad_share: float | None,
) -> ReadOptions:
    """Return how a version's file is read, with the options that are not None."""
    reading = ReadOptions.model_validate(version.request.get("reading", {}))
    changes = {"dialect": dialect, "images": images, "max_bad_share": max_bad_share}
    return reading.model_copy(update={name: option for name, option in changes.items() if option is not None})


def new_version(
    dataset: Dataset, stored: StoredUpload, roles: Roles, reading: ReadOptions, *, by: User
) -> DatasetVersion:
    """Add a data set's next version and queue its profile job. The caller has checked the rights.

    Raises:
        QuotaReached: the file does not fit into the project's disk quota.
    """
    request = {"source": stored.source, "file": stored.name, **roles.as_request()}
    if stored.code is not None:
        request["code"] = stored.code
    if stored.further:
        request["files"] = [stored.name, *(name for _, name in stored.further)]
    with transaction.atomic():
        if dataset.project is not None:
            artifacts_of_all = [stored.artifact, *(artifact for artifact, _ in stored.further)]
            quotas.require_room_for_artifact(dataset.project, *artifacts_of_all)
        version = number_version(dataset, request, reading, by=by, upload=stored.artifact)
        FurtherFile.objects.bulk_create(
            FurtherFile(version=version, position=position, artifact=artifact)
            for position, (artifact, _) in enumerate(stored.further, start=2)
        )
        audit.record(
            "dataset.version", version, by=by, project=dataset.project, upload=stored.artifact.digest
        )
        queue_profile(version, by=by)
    return version


def number_version(
    dataset: Dataset,
    request: dict[str, Any],
    reading: ReadOptions,
    *,
    by: User,
    upload: Artifact | None = None,
) -> DatasetVersion:
    """Create the next version's row, in the caller's transaction.

    Args:
        dataset: the data set.
        request: the known facts about the file and its columns.
        reading: how the file is read.
        by: who asked for it.
        upload: the file; None until it is there.
    """
    if reading != ReadOptions():
        request = {**request, "reading": reading.model_dump(mode="json", exclude_none=True)}
    # The lock prevents two concurrent uploads from using the same number.
    Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)
    newest = dataset.versions.aggregate(Max("number"))["number__max"] or 0
    return dataset.versions.create(number=newest + 1, request=request, upload=upload, created_by=by)
