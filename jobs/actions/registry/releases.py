"""Changes the versions that an endpoint serves: publishes a signed release with the next generation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from django.db import transaction

from jobs import access, clock, hints, signing
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.errors import BadInput, Conflict, StaleState
from jobs.messages.audit import AuditAnchor
from jobs.messages.release import (
    Release,
    ReleasedCode,
    ReleasedFile,
    ReleasedMesh,
    ReleasedRule,
    ReleasedVersion,
)
from jobs.models import AuditEvent, Endpoint, ModelVersion, PromotionRequest, ReleaseRecord, User
from jobs.queries.code import installation
from jobs.queries.code.code import files_of
from jobs.queries.registry import releases as queries
from jobs.queries.registry.versions import is_foreign, task_of
from jobs.queries.runs import devices
from jobs.spec.problems import Problem


@dataclass(frozen=True)
class Change:
    """A change to the versions that an endpoint serves, with its reason."""

    kind: Literal["promote", "rollback", "stage", "take_down", "bring_up", "label"]
    production: ModelVersion | None
    staging: ModelVersion | None
    version: ModelVersion | None
    """The version that the change is about; None takes the endpoint down."""

    replaced: ModelVersion | None
    """The version that was there before."""

    promotion: PromotionRequest | None
    reason: str


def put_into_production(endpoint: Endpoint, promotion: PromotionRequest, *, by: User) -> ReleaseRecord:
    """Put an approved version into production, in the caller's transaction. This brings the endpoint up.

    Raises:
        StaleState: the endpoint has changed in the meantime.
    """
    version = promotion.version
    # A version that becomes production leaves staging.
    staging = None if endpoint.staging_id == version.pk else endpoint.staging
    change = Change(
        kind="promote",
        production=version,
        staging=staging,
        version=version,
        replaced=endpoint.production,
        promotion=promotion,
        reason=promotion.comment,
    )
    return _publish_change(endpoint, change, by=by)


def put_on_staging(endpoint: Endpoint, promotion: PromotionRequest, *, by: User) -> ReleaseRecord:
    """Put an approved version on staging, in the caller's transaction. Production does not change.

    Raises:
        StaleState: the endpoint has changed in the meantime.
        Conflict: the endpoint is down.
    """
    require_up(endpoint)
    change = Change(
        kind="stage",
        production=endpoint.production,
        staging=promotion.version,
        version=promotion.version,
        replaced=endpoint.staging,
        promotion=promotion,
        reason=promotion.comment,
    )
    return _publish_change(endpoint, change, by=by)


def rollback(endpoint: Endpoint, *, reason: str, by: User) -> ReleaseRecord:
    """Restore the latest earlier production version that was never rolled back from.

    It needs no approval by a second person, since a rollback must be quick. An endpoint that is down comes
    up.

    Raises:
        Forbidden: `by` may not change the served versions.
        BadInput: no reason is given.
        Conflict: there is no such version.
        StaleState: the endpoint has changed in the meantime.
    """
    access.require(by, endpoint.model.project, Action.SERVE)
    if not reason.strip():
        raise BadInput("A rollback needs a reason.", [Problem("/reason", "enter a reason")])
    with transaction.atomic():
        endpoint = lock_endpoint(endpoint)
        target = queries.rollback_target(endpoint)
        if endpoint.production is None or target is None:
            raise Conflict(
                f"{endpoint.model.name} has no earlier production version to roll back to.",
                code="nothing_to_roll_back_to",
            )
        change = Change(
            kind="rollback",
            production=target,
            staging=endpoint.staging,
            version=target,
            replaced=endpoint.production,
            promotion=None,
            reason=reason.strip(),
        )
        return _publish_change(endpoint, change, by=by)


def take_down(endpoint: Endpoint, *, reason: str, by: User) -> ReleaseRecord:
    """Stop serving a model: prediction servers answer as if it did not exist.

    The stages keep their versions, so that `bring_up` restores them. It needs no second person.

    Raises:
        Forbidden: `by` may not change the served versions.
        BadInput: no reason is given.
        Conflict: the endpoint is down already, or serves nothing.
        StaleState: the endpoint has changed in the meantime.
    """
    access.require(by, endpoint.model.project, Action.SERVE)
    if not reason.strip():
        raise BadInput("Taking an endpoint down needs a reason.", [Problem("/reason", "enter a reason")])
    with transaction.atomic():
        endpoint = lock_endpoint(endpoint)
        require_up(endpoint)
        if endpoint.production is None and endpoint.staging is None:
            raise Conflict(f"{endpoint.model.name} serves no version.", code="nothing_served")
        change = Change(
            kind="take_down",
            production=endpoint.production,
            staging=endpoint.staging,
            version=None,
            replaced=endpoint.production or endpoint.staging,
            promotion=None,
            reason=reason.strip(),
        )
        return _publish_change(endpoint, change, by=by)


def bring_up(endpoint: Endpoint, *, reason: str = "", by: User) -> ReleaseRecord:
    """Serve the versions again that an endpoint served when it was taken down.

    They were approved, so it needs no second person.

    Raises:
        Forbidden: `by` may not change the served versions.
        Conflict: the endpoint is not down.
        StaleState: the endpoint has changed in the meantime.
    """
    access.require(by, endpoint.model.project, Action.SERVE)
    with transaction.atomic():
        endpoint = lock_endpoint(endpoint)
        if not endpoint.is_down:
            raise Conflict(f"{endpoint.model.name} is not down.", code="not_down")
        change = Change(
            kind="bring_up",
            production=endpoint.production,
            staging=endpoint.staging,
            version=endpoint.production or endpoint.staging,
            replaced=None,
            promotion=None,
            reason=reason.strip(),
        )
        return _publish_change(endpoint, change, by=by)


def publish_labels(
    endpoint: Endpoint, *, version: ModelVersion, reason: str, by: User
) -> ReleaseRecord | None:
    """Publish a model's labels after one of its aliases has changed, in the caller's transaction.

    Open promotion requests stay valid, since the champion is the same.

    Args:
        endpoint: as returned by `lock_endpoint`.
        version: the version that the alias names, or named.
        reason: what has changed.
        by: who changed it.

    Returns:
        The release; None if the labels are the same, or nothing is served.
    """
    last = endpoint.releases.order_by("-generation").first()
    if last is None or endpoint.is_down or (endpoint.production is None and endpoint.staging is None):
        return None
    labels = {
        **queries.served_aliases(endpoint),
        **_versions_of_stages(endpoint.production, endpoint.staging),
    }
    if {name: labelled.number for name, labelled in labels.items()} == last.body["release"]["labels"]:
        return None
    change = Change(
        kind="label",
        production=endpoint.production,
        staging=endpoint.staging,
        version=version,
        replaced=None,
        promotion=None,
        reason=reason,
    )
    record = _publish_change(endpoint, change, by=by)
    open_requests = PromotionRequest.objects.open().filter(model=endpoint.model_id)
    of_champion = open_requests.filter(baseline_generation=endpoint.generation)
    of_champion.update(baseline_generation=record.generation)
    return record


def require_up(endpoint: Endpoint) -> None:
    """Raise Conflict if the endpoint is down."""
    if endpoint.is_down:
        raise Conflict(f"{endpoint.model.name} is down: bring it up first.", code="endpoint_down")


def lock_endpoint(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, refreshed and locked until the transaction ends."""
    # Two statements: one that waits for the lock would join the versions of the row before the change.
    Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    related = ("model__project", "production__artifact", "previous__artifact", "staging__artifact")
    return Endpoint.objects.select_related(*related).get(pk=endpoint.pk)


def _publish_change(endpoint: Endpoint, change: Change, *, by: User) -> ReleaseRecord:
    """Apply a change under the next generation, and create the signed record for prediction servers.

    Raises:
        StaleState: the endpoint has changed in the meantime.
    """
    generation, name = endpoint.generation + 1, endpoint.model.name
    # The audit row comes first: it holds the chain's lock, so release ids become visible in order
    # and a prediction server that asks "after 7?" never misses a 7 that commits late.
    row = _audit_change(endpoint, change, generation, by=by)
    previous = _swap_versions(endpoint, change, generation)
    release = _release_body(name, generation)
    if change.kind != "take_down":
        failed = change.replaced if change.kind == "rollback" else None
        served = [version for version in (change.production, change.staging) if version is not None]
        aliases = queries.served_aliases(endpoint, served=served, failed=failed)
        release = _release_body(name, generation, change.production, previous, change.staging, aliases)
    # A copy outside of the database: prediction servers keep the release.
    release = release.model_copy(update={"audit": AuditAnchor(number=row.number, hash=row.hash)})
    record = ReleaseRecord.objects.create(
        endpoint=endpoint,
        generation=generation,
        kind=change.kind,
        version=change.version,
        replaced=change.replaced,
        promotion=change.promotion,
        reason=change.reason,
        body=signing.sign(release).model_dump(mode="json"),
        by=by,
    )
    hints.send("releases", release=record.pk)
    return record


def _audit_change(endpoint: Endpoint, change: Change, generation: int, *, by: User) -> AuditEvent:
    model = endpoint.model
    return audit.record(
        f"release.{change.kind}",
        f"endpoint:{model.name}",
        by=by,
        project=model.project,
        generation=generation,
        version=change.version.number if change.version else None,
        digest=change.version.identity if change.version else None,
        replaced=change.replaced.number if change.replaced else None,
        promotion=change.promotion.pk if change.promotion else None,
        reason=change.reason,
    )


def _swap_versions(endpoint: Endpoint, change: Change, generation: int) -> ModelVersion | None:
    """Update the endpoint's row by compare-and-set. Return the version that a rollback would restore.

    Raises:
        StaleState: the row is no longer at the generation that the caller read.
    """
    by_rollback = change.kind == "rollback"
    previous = queries.rollback_target(endpoint, next_production=change.production, by_rollback=by_rollback)
    unchanged = Endpoint.objects.filter(pk=endpoint.pk, generation=endpoint.generation)
    if not unchanged.update(
        generation=generation,
        production=change.production,
        previous=previous,
        staging=change.staging,
        is_down=change.kind == "take_down",
    ):
        raise StaleState(
            f"The endpoint {endpoint.model.name} has changed in the meantime; reload it and try again."
        )
    return previous


def _release_body(
    model: str,
    generation: int,
    production: ModelVersion | None = None,
    previous: ModelVersion | None = None,
    staging: ModelVersion | None = None,
    aliases: Mapping[str, ModelVersion] | None = None,
) -> Release:
    labels = {**(aliases or {}), **_versions_of_stages(production, staging)}
    # The version to which a rollback returns stays loaded, so that a rollback takes effect at once.
    warm = {
        version.number: version for version in (production, previous, *labels.values()) if version is not None
    }
    standby = [number for number in sorted(warm) if production is None or number != production.number]
    return Release(
        model=model,
        generation=generation,
        production=production.number if production else None,
        standby=tuple(standby),
        labels={label: version.number for label, version in labels.items()},
        versions=tuple(_released_version(warm[number]) for number in sorted(warm)),
        issued_at=clock.now().isoformat(),
    )


def _versions_of_stages(
    production: ModelVersion | None, staging: ModelVersion | None
) -> dict[str, ModelVersion]:
    """Return the versions that the stages' labels name."""
    stages = {"production": production, "staging": staging}
    return {label: version for label, version in stages.items() if version is not None}


def _released_version(version: ModelVersion) -> ReleasedVersion:
    return ReleasedVersion(
        number=version.number,
        digest=version.artifact_id,
        bytes=version.artifact.bytes,
        signature=version.signature,
        class_labels=tuple(str(label) for label in version.class_labels),
        multilabel=_is_multilabel(version),
        code=_released_code(version),
        mesh=_released_mesh(version),
    )


def _is_multilabel(version: ModelVersion) -> bool:
    """Return whether several classes of a version may apply to one row."""
    try:
        return bool(version.class_labels) and task_of(version) == "multilabel"
    except ValueError:
        # As below.
        return False


def _released_mesh(version: ModelVersion) -> ReleasedMesh | None:
    """Return the mesh whose layout rules divided the version's training; None without rules.

    A version that needs its code runs in a sandbox, which has no devices.
    """
    job = version.source_job
    try:
        mesh = None if job is None or version.needs_code else devices.mesh_of(job)
        if mesh is None or not mesh.layout or mesh.size() == 1 or is_foreign(version):
            return None
    except ValueError:
        # A spec of an earlier release that no longer parses must not hold up a rollback.
        return None
    rules = tuple(ReleasedRule(match=rule.match, axes=rule.axes) for rule in mesh.layout)
    return ReleasedMesh(
        shape=mesh.shape, axis_names=mesh.axis_names, batch_axis=mesh.batch_axis, layout=rules
    )


def _released_code(version: ModelVersion) -> ReleasedCode | None:
    code = version.needed_code
    if code is None:
        return None
    packages = code.findings.packages
    return ReleasedCode(
        digest=code.digest,
        files=tuple(
            ReleasedFile(path=file.path, digest=file.artifact_id, bytes=file.artifact.bytes)
            for file in files_of(code)
        ),
        requirements=() if packages is None else tuple(packages.requirements),
        requirements_digest=version.requirements_digest,
        packages=None if version.packages is None else version.packages.packages,
        minimum=installation.sandbox_minimum().value,
    )
