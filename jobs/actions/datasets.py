"""Data sets: the bundled catalogue, uploads, versions and what their profile jobs find.

Nothing here reads a user's file: it goes into the store as bytes, and a profile job opens it in a runner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from django.db import IntegrityError, transaction
from django.db.models import Max
from pydantic import TypeAdapter, ValidationError

from jobs import access, sniff
from jobs.actions import audit, submit
from jobs.contracts.data import Slug, Task
from jobs.contracts.problems import Problem
from jobs.contracts.profile import Profile
from jobs.errors import BadInput, Conflict
from jobs.models import Artifact, Dataset, DatasetVersion, Job, Project, User
from jobs.store import sha256_of, store

BUNDLED: dict[str, tuple[str, str]] = {
    "digits": ("Handwritten digits", "1,797 grey images of 8 × 8 pixels, ten classes."),
    "breast_cancer": ("Breast cancer", "569 biopsies with 30 measures each: malignant or benign."),
    "wine": ("Wine", "178 wines with 13 chemical measures each, from three cultivars."),
    "iris": ("Iris", "150 flowers with four measures each, of three species."),
    "diabetes": ("Diabetes", "442 patients with ten measures each and how the disease went on: a number."),
}
"""Slug → name, description. The data come with scikit-learn's wheel, so no network is needed."""


SLUG: TypeAdapter[str] = TypeAdapter(Slug)


def check_slug(slug: str) -> str:
    """Return a data set's slug.

    Raises:
        BadInput: it is none; says what one looks like.
    """
    try:
        return SLUG.validate_python(slug)
    except ValidationError as error:
        message = f"{slug!r}: up to 63 small letters, digits, - and _, a letter or digit first"
        raise BadInput(message, [Problem("/slug", message)]) from error


@dataclass(frozen=True)
class Roles:
    """What the columns are for; what is None is found by the profile job."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None

    @classmethod
    def read(cls, target: str, features: str | Sequence[str], task: str) -> "Roles":
        """Read the roles from texts, as forms send them; features may be separated by commas.

        Raises:
            BadInput: there is no such task.
        """
        if task and task not in get_args(Task):
            known = ", ".join(get_args(Task))
            raise BadInput(f"there is no task {task!r}", [Problem("/task", f"choose one of {known}")])
        names = features.split(",") if isinstance(features, str) else features
        columns = tuple(name.strip() for name in names if name.strip())
        return cls(target.strip() or None, columns or None, task or None)  # type: ignore[arg-type]

    def as_request(self) -> dict[str, Any]:
        """Return what was asked for, as JSON."""
        asked = {"target": self.target, "features": list(self.features or ()), "task": self.task}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True)
class Upload:
    """A file that came in: where it lies for now, its name, and the digest its sender gave."""

    path: Path
    name: str
    sha256: str | None = None


def ensure_bundled() -> list[DatasetVersion]:
    """Make the bundled data sets that are missing, with their profile jobs. Any process may call it."""
    return [_ensure_one(slug, name, description) for slug, (name, description) in BUNDLED.items()]


def _ensure_one(slug: str, name: str, description: str) -> DatasetVersion:
    with transaction.atomic():
        dataset, _ = Dataset.objects.get_or_create(
            project=None,
            slug=slug,
            defaults={"name": name, "description": description, "source": Dataset.Source.BUNDLED},
        )
        request = {"source": "bundled", "bundled": slug}
        version, _ = dataset.versions.get_or_create(number=1, defaults={"request": request})
        if version.state == DatasetVersion.State.PREPARING and not _is_being_profiled(version):
            submit.profile(version, by=None)
    return version


def _is_being_profiled(version: DatasetVersion) -> bool:
    """Say whether a job works on it, or has done so: a failed one is not repeated at every start."""
    return Job.objects.profiling(version.pk).exists()


def create(
    project: Project,
    *,
    slug: str,
    upload: Upload,
    by: User,
    name: str = "",
    description: str = "",
    roles: Roles | None = None,
) -> DatasetVersion:
    """Make a data set from an upload; its first version is preparing until a worker has read it.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the slug is taken.
        BadInput: the file is not what its name says, or its digest is not the one given.
    """
    access.require(by, project, access.Action.WRITE)
    kept = _keep(upload)
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
            return _new_version(dataset, kept, roles or Roles(), by=by)
    except IntegrityError as error:
        raise Conflict(f"{project.slug} has a data set {slug!r} already: add a version to it") from error


def add_version(dataset: Dataset, *, upload: Upload, by: User, roles: Roles | None = None) -> DatasetVersion:
    """Add the next version of an uploaded data set.

    Raises:
        Forbidden: `by` may not write in the project; nobody may change a bundled set.
        BadInput: as for `create`.
    """
    access.require(by, dataset.project, access.Action.WRITE)
    return _new_version(dataset, _keep(upload), roles or Roles(), by=by)


def set_roles(version: DatasetVersion, roles: Roles, *, by: User) -> DatasetVersion:
    """Give the columns other roles: a new version over the same bytes, since versions never change."""
    dataset = version.dataset
    access.require(by, dataset.project, access.Action.WRITE)
    if version.upload is None:
        raise Conflict(f"{dataset.slug} is bundled: choose roles in the experiment instead")
    kept = _Kept(version.upload, version.request["source"], version.request.get("file", ""))
    return _new_version(dataset, kept, roles, by=by)


@dataclass(frozen=True)
class _Kept:
    """An upload that is in the store."""

    artifact: Artifact
    source: str
    name: str


def _keep(upload: Upload) -> _Kept:
    """Check an upload and put it into the store: slow, so outside of any transaction."""
    source = sniff.source_of(upload.path, upload.name)
    if upload.sha256 and (found := sha256_of(upload.path).digest) != upload.sha256.lower():
        message = f"the file that arrived has sha256 {found}, not {upload.sha256.lower()}"
        raise BadInput(message, [Problem("/sha256", message)])
    stored = store().put(upload.path)
    artifact, _ = Artifact.objects.get_or_create(digest=stored.digest, defaults={"bytes": stored.bytes})
    return _Kept(artifact, source, Path(upload.name).name[:200])


def _new_version(dataset: Dataset, kept: _Kept, roles: Roles, *, by: User) -> DatasetVersion:
    request = {"source": kept.source, "file": kept.name, **roles.as_request()}
    with transaction.atomic():
        # the lock keeps two uploads at once from taking the same number
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        newest = dataset.versions.aggregate(Max("number"))["number__max"] or 0
        version = dataset.versions.create(
            number=newest + 1, request=request, upload=kept.artifact, created_by=by
        )
        audit.record("dataset.version", version, by=by, project=dataset.project, upload=kept.artifact.digest)
        submit.profile(version, by=by)
    return version


def profiled(version_id: int, profile: Profile, digest: str, table: Artifact) -> None:
    """Take in what a profile job found: the version is ready. `table` is an .npz."""
    DatasetVersion.objects.filter(pk=version_id).update(
        state=DatasetVersion.State.READY,
        table=table,
        digest=digest,
        rows=profile.rows,
        profile_json=profile.model_dump(mode="json"),
        error=None,
    )


def profile_failed(version_id: int, error: Mapping[str, Any]) -> None:
    """Keep why a version could not be read, in the words of its own file name.

    A version that is ready already stays so: only its first profile decides.
    """
    version = DatasetVersion.objects.select_related("upload").get(pk=version_id)
    told = dict(error)
    if version.upload is not None:
        shown = version.request.get("file") or "the file"
        told["message"] = str(told.get("message", "")).replace(version.upload.digest, shown)
    DatasetVersion.objects.filter(pk=version_id, state=DatasetVersion.State.PREPARING).update(
        state=DatasetVersion.State.FAILED, error=told
    )


def try_again(version: DatasetVersion, *, by: User) -> Job:
    """Profile a failed version once more, after a worker's fault was mended.

    Raises:
        Conflict: it has not failed, or a job is at it.
    """
    if version.dataset.project is None:
        access.require_admin(by)
    else:
        access.require(by, version.dataset.project, access.Action.WRITE)
    open_jobs = Job.objects.profiling(version.pk)
    with transaction.atomic():
        states = DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.FAILED)
        if open_jobs.unfinished().exists() or not states.update(
            state=DatasetVersion.State.PREPARING, error=None
        ):
            raise Conflict(f"{version} is {version.state}: only a failed version is read again")
        audit.record("dataset.try_again", version, by=by, project=version.dataset.project)
        return submit.profile(version, by=by)
