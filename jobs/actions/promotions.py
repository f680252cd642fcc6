"""A version's way to an endpoint: request, gates, another person's decision, release."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from jobs import access, clock
from jobs.access import Action
from jobs.actions import audit, gates, releases, submit
from jobs.actions.isolation import each
from jobs.contracts.problems import Problem
from jobs.errors import BadInput, Conflict, StaleState
from jobs.kinds.gate.payload import GateResult
from jobs.models import Decision, Endpoint, Job, ModelVersion, PromotionRequest, User
from jobs.queries import promotions as may
from jobs.queries.gates import Gate
from jobs.queries.gates import read as read_gates
from jobs.store import sha256_of, store

State = PromotionRequest.State
OPEN = frozenset({State.GATING, State.PENDING})
STAGES = ("production", "staging")
LIFETIME = timedelta(days=7)
COMMENT_LIMIT = 10_000


def request(version: ModelVersion, *, stage: str, comment: str = "", by: User) -> PromotionRequest:
    """Ask for a version to go onto a stage; its gates are queued at once.

    Raises:
        Forbidden: `by` may not ask in this project.
        BadInput: the stage is not offered.
        Conflict: the version is not ready, is there already, or was asked for already.
    """
    model = version.model
    access.require(by, model.project, Action.WRITE)
    _check_stage(stage)
    _check_comment(comment)
    with transaction.atomic():
        endpoint = releases.locked(Endpoint.objects.get(model=model))
        _check_version(version, endpoint, stage)
        promotion = PromotionRequest.objects.create(
            model=model,
            version=version,
            stage=stage,
            comment=comment.strip(),
            requested_by=by,
            expires=clock.now() + LIFETIME,
        )
        _start_gates(promotion, endpoint, by=by)
        _audit("request", promotion, by=by, version=version.number, stage=stage, digest=version.artifact_id)
    return promotion


def _check_stage(stage: str) -> None:
    if stage == "canary":
        message = (
            "Canary releases come with traffic splitting, in a later version; ask for production or staging."
        )
        raise BadInput(message, [Problem("/stage", message)])
    if stage not in STAGES:
        message = f"{stage[:40]!r} is no stage; choose production or staging"
        raise BadInput(message, [Problem("/stage", message)])


def _check_comment(comment: str) -> None:
    if len(comment) > COMMENT_LIMIT:
        message = f"A comment has at most {COMMENT_LIMIT:,} characters."
        raise BadInput(message, [Problem("/comment", message)])


def _check_version(version: ModelVersion, endpoint: Endpoint, stage: str) -> None:
    if version.state != ModelVersion.State.CANDIDATE:
        why = "is being validated; ask again in a moment"
        if version.state == ModelVersion.State.INVALID:
            why = "did not validate and cannot be served"
        raise Conflict(f"{version} {why}.", code="version_not_ready")
    there = endpoint.production_id if stage == "production" else endpoint.staging_id
    if there == version.pk:
        raise Conflict(f"{version} is in {stage} already.", code="already_there")
    twin = PromotionRequest.objects.filter(version=version, stage=stage, state__in=OPEN).first()
    if twin is not None:
        raise Conflict(f"Request {twin.pk} asks for the same and is {twin.state}.", code="already_requested")


def _start_gates(promotion: PromotionRequest, endpoint: Endpoint, *, by: User) -> None:
    """Bind the request to the champion of now and have it judged against that one."""
    promotion.baseline_version = endpoint.production
    promotion.baseline_generation = endpoint.generation
    promotion.gates = []
    promotion.state = State.GATING
    promotion.gate_job = submit.gate(promotion, by=by)
    promotion.save(update_fields=["baseline_version", "baseline_generation", "gates", "state", "gate_job"])


def gated(job: Job, result: GateResult) -> None:
    """Take in what the gates say; a late word about a request that went on is ignored."""
    _judge(job, gates.from_result(result))


def gate_failed(job: Job, error: dict[str, Any]) -> None:
    """Take in that the gates could not be run, which nobody can approve."""
    _judge(job, [gates.broken(str(error.get("message", "the gate job failed")))])


def _judge(job: Job, found: Sequence[Gate]) -> None:
    failed = gates.failed(found)
    with transaction.atomic():
        # Of the job that judges against the champion of now: an earlier one compared with another.
        judged = PromotionRequest.objects.filter(gate_job=job, state=State.GATING)
        changed = judged.update(
            gates=[gate.model_dump(mode="json") for gate in found],
            state=State.FAILED if failed else State.PENDING,
            decided=clock.now() if failed else None,
        )
        if changed:
            promotion = PromotionRequest.objects.select_related("model__project").get(gate_job=job)
            _audit("gated", promotion, by=None, state=promotion.state, failed=failed)


def approve(
    promotion: PromotionRequest, *, accept: Iterable[str] = (), comment: str = "", by: User
) -> PromotionRequest:
    """Approve a request and release its version, in one transaction.

    The approval is bound to the version's digest, the gates' results and the endpoint's generation. If
    the endpoint has changed since the gates ran, they run again and nobody has approved anything.

    Raises:
        Forbidden: `by` is no approver, or asked for it, or made the version.
        GatesOpen: a gate that was not evaluated is not in `accept`.
        StaleState: the request is not pending (any more), or the champion changed.
        Conflict: the stored file is no longer what was judged.
    """
    _check_comment(comment)
    may.require_independent(promotion, by)
    _check_bytes(promotion.version)  # reads the whole file: before anything is locked
    with transaction.atomic():
        promotion, endpoint = _locked(promotion)
        refusal = _overtaken(promotion, endpoint, by=by)
        if refusal is None:
            _release(promotion, endpoint, accept=accept, comment=comment, by=by)
    if refusal is not None:  # after commit: that it expired, or is being judged again, stays
        raise refusal
    return promotion


def _overtaken(promotion: PromotionRequest, endpoint: Endpoint, *, by: User) -> StaleState | None:
    """Return why the request cannot be approved as it stands, having moved it on where time did."""
    if promotion.state != State.PENDING:
        return StaleState(f"Request {promotion.pk} is {promotion.state}, not pending.")
    if promotion.expires <= clock.now():
        _expire(promotion)
        return StaleState(f"Request {promotion.pk} expired {promotion.expires:%Y-%m-%d %H:%M} UTC; ask anew.")
    if promotion.baseline_generation != endpoint.generation:
        _start_gates(promotion, endpoint, by=by)
        _audit("regate", promotion, by=by, generation=endpoint.generation)
        return StaleState(
            f"{endpoint.model.name} changed since the gates of request {promotion.pk} ran; "
            "they run again against what is live now. Look at them, then decide."
        )
    return None


def _release(
    promotion: PromotionRequest, endpoint: Endpoint, *, accept: Iterable[str], comment: str, by: User
) -> None:
    accepted = gates.require_accepted(read_gates(promotion), accept)
    _decide(promotion, State.APPROVED, "approve", comment, by=by, accept=accepted)
    publish = releases.promote if promotion.stage == "production" else releases.stage
    promotion.generation = publish(endpoint, promotion, by=by).generation
    promotion.save(update_fields=["generation"])


def _check_bytes(version: ModelVersion) -> None:
    found = sha256_of(store().path(version.artifact_id)).digest
    if found != version.artifact_id:
        raise Conflict(
            f"The file of {version} has digest {found[:12]} instead of {version.artifact_id[:12]}: "
            "it was altered in the store.",
            code="artifact_altered",
        )


def reject(promotion: PromotionRequest, *, comment: str = "", by: User) -> PromotionRequest:
    """Turn a request down.

    Raises:
        Forbidden: `by` may not decide it.
        StaleState: it is not open (any more).
    """
    _check_comment(comment)
    may.require_independent(promotion, by)
    with transaction.atomic():
        promotion, _ = _locked(promotion)
        _decide(promotion, State.REJECTED, "reject", comment, by=by)
    return promotion


def withdraw(promotion: PromotionRequest, *, comment: str = "", by: User) -> PromotionRequest:
    """Take a request back: its requester may, and the project's admins.

    Raises:
        Forbidden: `by` is neither.
        StaleState: it is not open (any more).
    """
    _check_comment(comment)
    project = promotion.model.project
    if by.pk != promotion.requested_by_id:
        access.require(by, project, Action.MANAGE)
    access.require(by, project, Action.VIEW)
    with transaction.atomic():
        promotion, _ = _locked(promotion)
        _decide(promotion, State.WITHDRAWN, "withdraw", comment, by=by)
    return promotion


def comment(promotion: PromotionRequest, text: str, *, by: User) -> Decision:
    """Add to a request's thread; whoever sees it may.

    Raises:
        BadInput: there is no text.
    """
    access.require(by, promotion.model.project, Action.VIEW)
    _check_comment(text)
    if not text.strip():
        raise BadInput("A comment needs some text.", [Problem("/comment", "say something")])
    with transaction.atomic():
        said = _say(promotion, "comment", text, by=by)
        _audit("comment", promotion, by=by)
    return said


def expire_due() -> int:
    """Expire the open requests whose time is over; return how many."""
    due = PromotionRequest.objects.filter(state__in=OPEN, expires__lte=clock.now())
    return each(due.select_related("model__project"), _expire)


@transaction.atomic
def _expire(promotion: PromotionRequest) -> bool:
    open_still = PromotionRequest.objects.filter(pk=promotion.pk, state__in=OPEN)
    if not open_still.update(state=State.EXPIRED, decided=clock.now()):
        return False
    _audit("expire", promotion, by=None)
    return True


def _locked(promotion: PromotionRequest) -> tuple[PromotionRequest, Endpoint]:
    """Return the request and its endpoint as they are now. Endpoint first, everywhere: no deadlock."""
    endpoint = releases.locked(Endpoint.objects.get(model=promotion.model_id))
    PromotionRequest.objects.select_for_update().get(pk=promotion.pk)
    related = ("model__project", "version__artifact", "version__model", "requested_by", "baseline_version")
    return PromotionRequest.objects.select_related(*related).get(pk=promotion.pk), endpoint


def _decide(
    promotion: PromotionRequest,
    to: State,
    verdict: str,
    text: str,
    *,
    by: User,
    accept: Sequence[str] = (),
) -> None:
    """End the openness of a request by compare-and-set, with the decision and its audit row."""
    expected = (State.PENDING,) if to == State.APPROVED else OPEN
    now = clock.now()
    rows = PromotionRequest.objects.filter(pk=promotion.pk, state__in=expected)
    if not rows.update(state=to, decided=now):
        raise StaleState(f"Request {promotion.pk} is {promotion.state}; it cannot become {to} now.")
    promotion.state, promotion.decided = to, now
    _say(promotion, verdict, text, by=by, accept=accept)
    _audit(
        verdict,
        promotion,
        by=by,
        digest=promotion.version.artifact_id,
        accept=list(accept),
        gates={gate.name: gate.state for gate in read_gates(promotion)},
        baseline_generation=promotion.baseline_generation,
    )


def _say(
    promotion: PromotionRequest, verdict: str, text: str, *, by: User, accept: Sequence[str] = ()
) -> Decision:
    return Decision.objects.create(
        promotion=promotion,
        user=by,
        verdict=verdict,
        comment=text.strip(),
        accept=list(accept),
        digest=promotion.version.artifact_id,
    )


def _audit(verb: str, promotion: PromotionRequest, *, by: User | None, **detail: Any) -> None:
    audit.record(
        f"promotion.{verb}", f"promotion:{promotion.pk}", by=by, project=promotion.model.project, **detail
    )
