"""Makes dataset versions from data at an address, and cancels or repeats their fetches."""

from django.db import transaction

from jobs import access, hints
from jobs.actions.audit import audit
from jobs.actions.data import datasets, uploads
from jobs.actions.data.datasets import Roles
from jobs.actions.data.fetch_addresses import check_address, seal_address
from jobs.actions.data.fetch_attempts import fail_version
from jobs.actions.people import quotas
from jobs.errors import Conflict
from jobs.models import Credential as CredentialRow
from jobs.models import Dataset, DatasetVersion, Fetch, Project, User
from jobs.spec.data.addresses import Address
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.data.fetching import FetchRequest

State = Fetch.State


def create(
    project: Project,
    *,
    slug: str,
    request: FetchRequest,
    by: User,
    name: str = "",
    description: str = "",
    roles: Roles | None = None,
    reading: ReadOptions | None = None,
) -> DatasetVersion:
    """Create a data set whose first version is fetched from an address.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: the address cannot be used, or the credential is not for it.
        Conflict: the slug is taken.
        QuotaReached: the project has too many uploads in progress.
    """
    access.require(by, project, access.Action.WRITE)
    address = check_address(project, request)
    return datasets.create_with(
        project,
        slug=slug,
        by=by,
        name=name,
        description=description,
        first=lambda dataset: new_version(dataset, address, request, roles, reading, by=by),
    )


def add_version(
    dataset: Dataset,
    *,
    request: FetchRequest,
    by: User,
    roles: Roles | None = None,
    reading: ReadOptions | None = None,
) -> DatasetVersion:
    """Add a data set's next version, which is fetched from an address.

    Raises:
        Forbidden: `by` may not write in the project, or the data set is bundled.
        BadInput: the address cannot be used, or the credential is not for it.
        QuotaReached: the project has too many uploads in progress.
    """
    access.require(by, dataset.project, access.Action.WRITE)
    if dataset.project is None:
        raise Conflict(f"{dataset.slug} is bundled and cannot have further versions.")
    address = check_address(dataset.project, request)
    with transaction.atomic():
        return new_version(dataset, address, request, roles, reading, by=by)


def new_version(
    dataset: Dataset,
    address: Address,
    request: FetchRequest,
    roles: Roles | None,
    reading: ReadOptions | None,
    *,
    by: User,
    unchanged_since: str = "",
) -> DatasetVersion:
    """Add a version whose file is fetched from a checked address.

    `unchanged_since` names the version whose file has the request's digest. Call it in a transaction.
    """
    assert dataset.project is not None  # noqa: S101 - bundled data sets have no fetched versions
    project = quotas.lock_project(dataset.project)
    uploads.require_fewer(project)
    body = {"file": request.file_name or address.name, **(roles or Roles()).as_request()}
    version = datasets.number_version(dataset, body, reading or ReadOptions(), by=by)
    row = CredentialRow.objects.filter(project=project, name=request.credential).first()
    Fetch.objects.create(
        version=version,
        mode=request.mode,
        shown=address.shown,
        sealed_url=seal_address(address.url, version),
        credential=row,
        credential_name=request.credential,
        expected_sha256=request.sha256.lower(),
        unchanged_since=unchanged_since,
    )
    audit.record("dataset.fetch", version, by=by, project=project, address=address.shown)
    hints.send("schedule", fetch=version.pk)
    return version


def cancel(version: DatasetVersion, *, by: User) -> None:
    """Cancel a fetch. Its process ends soon after, and keeps nothing.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the version is not being fetched.
    """
    access.require(by, version.dataset.project, access.Action.WRITE)
    with transaction.atomic():
        open_one = Fetch.objects.filter(version=version, state__in=(State.WAITING, State.RUNNING))
        if not open_one.update(state=State.CANCELLED, until=None, reserved=0):
            raise Conflict(f"{version} is not being fetched.")
        fail_version(version.pk, "cancelled", f"{by} cancelled the fetch.")
        audit.record("dataset.fetch_cancel", version, by=by, project=version.dataset.project)
    hints.send("schedule", fetch=version.pk)


def fetch_again(version: DatasetVersion, *, by: User) -> None:
    """Fetch a failed or cancelled version's file again.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the version is being fetched, or has its file.
        QuotaReached: the project has too many uploads in progress.
    """
    project = version.dataset.project
    access.require(by, project, access.Action.WRITE)
    assert project is not None  # noqa: S101 - bundled data sets have no fetched versions
    with transaction.atomic():
        uploads.require_fewer(quotas.lock_project(project))
        ended = Fetch.objects.filter(version=version, state__in=(State.FAILED, State.CANCELLED))
        name = ended.values_list("credential_name", flat=True).first() or ""
        # It may have been saved again since.
        row = CredentialRow.objects.filter(project=project, name=name).first()
        if not ended.update(
            state=State.WAITING, attempts=0, received=0, total=None, started=None, credential=row
        ):
            raise Conflict(f"{version} is {version.state}: only a failed fetch can be repeated")
        DatasetVersion.objects.filter(pk=version.pk).update(state=DatasetVersion.State.PREPARING, error=None)
        audit.record("dataset.fetch_again", version, by=by, project=project)
    hints.send("schedule", fetch=version.pk)
