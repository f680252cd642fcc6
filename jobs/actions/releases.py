"""What an endpoint serves changes here: a signed record, one generation higher, by compare-and-set."""

from dataclasses import dataclass
from typing import Literal

from django.db import transaction
from django.db.models import Min

from jobs import access, clock, hints, signing
from jobs.access import Action
from jobs.actions import audit
from jobs.contracts.problems import Problem
from jobs.contracts.release import Release, ReleasedVersion, ReplicaReport
from jobs.errors import BadInput, Conflict, NotFound, StaleState
from jobs.models import Endpoint, ModelVersion, PromotionRequest, ReleaseRecord, Replica, User
from jobs.queries import registry
from jobs.queries import releases as queries


@dataclass(frozen=True)
class Change:
    """What an endpoint is to serve from now on, and why."""

    kind: Literal["promote", "rollback", "stage"]
    production: ModelVersion | None
    staging: ModelVersion | None
    version: ModelVersion
    """The version that the change is about."""

    replaced: ModelVersion | None
    """What stood in its place."""

    promotion: PromotionRequest | None
    reason: str


def promote(endpoint: Endpoint, promotion: PromotionRequest, *, by: User) -> ReleaseRecord:
    """Put an approved version into production, in the caller's transaction.

    Raises:
        StaleState: the endpoint changed meanwhile.
    """
    version = promotion.version
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
    return _publish(endpoint, change, by=by)


def stage(endpoint: Endpoint, promotion: PromotionRequest, *, by: User) -> ReleaseRecord:
    """Put an approved version on staging, beside what is in production, in the caller's transaction.

    Raises:
        StaleState: the endpoint changed meanwhile.
    """
    change = Change(
        kind="stage",
        production=endpoint.production,
        staging=promotion.version,
        version=promotion.version,
        replaced=endpoint.staging,
        promotion=promotion,
        reason=promotion.comment,
    )
    return _publish(endpoint, change, by=by)


def rollback(endpoint: Endpoint, *, reason: str, by: User) -> ReleaseRecord:
    """Go back to the latest earlier production version that was never rolled back from.

    One person may do it alone: taking back must be quick.

    Raises:
        Forbidden: `by` may not change what the endpoint serves.
        BadInput: no reason is given.
        Conflict: there is no such version.
        StaleState: the endpoint changed meanwhile.
    """
    access.require(by, endpoint.model.project, Action.SERVE)
    if not reason.strip():
        raise BadInput("A rollback needs a reason.", [Problem("/reason", "say why")])
    with transaction.atomic():
        endpoint = locked(endpoint)
        target = queries.rollback_target(endpoint)
        if endpoint.production is None or target is None:
            raise Conflict(
                f"{endpoint.model.name} has no earlier production version to go back to.",
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
        return _publish(endpoint, change, by=by)


def locked(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint's row as it is now, locked until the transaction ends."""
    Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    related = ("model__project", "production__artifact", "previous__artifact", "staging__artifact")
    return Endpoint.objects.select_related(*related).get(pk=endpoint.pk)


def _publish(endpoint: Endpoint, change: Change, *, by: User) -> ReleaseRecord:
    """Make the change under the next generation, and the signed record that prediction servers follow.

    Raises:
        StaleState: the endpoint changed meanwhile.
    """
    generation, name = endpoint.generation + 1, endpoint.model.name
    # The audit row comes first: it holds the chain's lock, so release ids become visible in order
    # and a prediction server that asks "after 7?" never misses a 7 that commits late.
    _audit(endpoint, change, generation, by=by)
    previous = _swap(endpoint, change, generation)
    release = _release(name, generation, change.production, previous, change.staging)
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


def _audit(endpoint: Endpoint, change: Change, generation: int, *, by: User) -> None:
    model = endpoint.model
    audit.record(
        f"release.{change.kind}",
        f"endpoint:{model.name}",
        by=by,
        project=model.project,
        generation=generation,
        version=change.version.number,
        digest=change.version.artifact_id,
        replaced=change.replaced.number if change.replaced else None,
        promotion=change.promotion.pk if change.promotion else None,
        reason=change.reason,
    )


def _swap(endpoint: Endpoint, change: Change, generation: int) -> ModelVersion | None:
    """Point the endpoint's row at what it now serves; return the version that a rollback would go to.

    Raises:
        StaleState: the row is no longer at the generation that the caller saw.
    """
    by_rollback = change.kind == "rollback"
    previous = queries.rollback_target(endpoint, becoming=change.production, by_rollback=by_rollback)
    unchanged = Endpoint.objects.filter(pk=endpoint.pk, generation=endpoint.generation)
    if not unchanged.update(
        generation=generation, production=change.production, previous=previous, staging=change.staging
    ):
        raise StaleState(f"The endpoint {endpoint.model.name} changed meanwhile; look again.")
    return previous


def _release(
    model: str,
    generation: int,
    production: ModelVersion | None,
    previous: ModelVersion | None,
    staging: ModelVersion | None,
) -> Release:
    named = {"production": production, "staging": staging}
    warm = {version.number: version for version in (production, previous, staging) if version is not None}
    standby = [number for number in sorted(warm) if production is None or number != production.number]
    return Release(
        model=model,
        generation=generation,
        production=production.number if production else None,
        standby=tuple(standby),
        labels={label: version.number for label, version in named.items() if version is not None},
        versions=tuple(_released(warm[number]) for number in sorted(warm)),
        issued_at=clock.now().isoformat(),
    )


def _released(version: ModelVersion) -> ReleasedVersion:
    return ReleasedVersion(
        number=version.number,
        digest=version.artifact_id,
        bytes=version.artifact.bytes,
        signature=version.signature,
        class_labels=tuple(str(label) for label in version.class_labels),
    )


def report(said: ReplicaReport, *, by: User) -> Replica:
    """Take in what a prediction server says of an endpoint; complete the promotions it fulfils.

    Raises:
        NotFound: there is no such endpoint, or `by` may not speak for its servers.
    """
    endpoint = _reported_endpoint(said.model, by)
    with transaction.atomic():
        replica, _ = Replica.objects.update_or_create(
            name=said.replica[:200],
            endpoint=endpoint,
            defaults={
                "generation": said.generation,
                "report": said.model_dump(mode="json"),
                "seen": clock.now(),
            },
        )
        _complete(endpoint)
    return replica


def _reported_endpoint(name: str, by: User) -> Endpoint:
    if not by.is_service:
        return access.get_endpoint(by, name, Action.SERVE)
    endpoint = Endpoint.objects.select_related("model__project").filter(model__name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {name!r}.")
    return endpoint


def _complete(endpoint: Endpoint) -> None:
    """Mark approved promotions as released once every live replica serves their generation."""
    everywhere = registry.live_replicas(endpoint).aggregate(lowest=Min("generation"))["lowest"]
    waiting = PromotionRequest.objects.filter(
        model=endpoint.model_id, state=PromotionRequest.State.APPROVED, generation__lte=everywhere or 0
    )
    for promotion in waiting.select_related("model__project"):
        done = PromotionRequest.objects.filter(pk=promotion.pk, state=PromotionRequest.State.APPROVED)
        if done.update(state=PromotionRequest.State.RELEASED):
            audit.record(
                "promotion.released",
                f"promotion:{promotion.pk}",
                by=None,
                project=promotion.model.project,
                generation=promotion.generation,
            )
