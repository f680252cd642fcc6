"""Requests, gates, approves, rejects and expires promotions to an endpoint's stages."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from jobs import access, clock
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.code.code import digest_of
from jobs.actions.isolation import for_each
from jobs.actions.registry import gates, releases, single_person_rule
from jobs.actions.runs import submit
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict, StaleState
from jobs.kinds.gate.payload import GatePayload
from jobs.models import Decision, Endpoint, Job, ModelVersion, PromotionRequest, User
from jobs.queries.code.code import files_of
from jobs.queries.registry import gate_rules
from jobs.queries.registry.deciders import require_independent
from jobs.queries.registry.gates import Gate, read_gates
from jobs.spec.problems import Problem
from jobs.store import sha256_of, store

State = PromotionRequest.State
STAGES = ("production", "staging")
LIFETIME = timedelta(days=7)
COMMENT_LIMIT = 10_000
MAX_COMMENTS = 100
"""How many comments a request may have: lists show all, and every viewer may write some."""


def request(version: ModelVersion, *, stage: str, comment: str = "", by: User) -> PromotionRequest:
    """Request the promotion of a version to a stage, and queue its gate job.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: the stage is unknown.
        Conflict: the version is not ready, already on the stage, or already requested.
    """
    model = version.model
    access.require(by, model.project, Action.WRITE)
    if version.needs_code:
        # The gates execute it.
        access.require(by, model.project, Action.RUN_CODE)
    _check_stage(stage)
    _check_comment(comment)
    with transaction.atomic():
        # Locked, so that of two requests for the same version and stage the second sees the first.
        endpoint = releases.lock_endpoint(Endpoint.objects.get(model=model))
        deletions.require_present(version)
        _check_version(version, endpoint, stage)
        promotion = PromotionRequest.objects.create(
            model=model,
            version=version,
            stage=stage,
            comment=comment.strip(),
            requested_by=by,
            single_person=single_person_rule.rule_applies(version, by=by),
            gate_revision=gate_rules.current_revision(model),
            expires=clock.now() + LIFETIME,
        )
        promotion.requested_by_issuers.set(by.login_issuers)
        _start_gates(promotion, endpoint, by=by)
        _audit_request(
            "request",
            promotion,
            by=by,
            version=version.number,
            stage=stage,
            digest=version.identity,
            gates_revision=gate_rules.revision_number(promotion.gate_revision),
            single_person=promotion.single_person,
        )
    return promotion


def _check_stage(stage: str) -> None:
    if stage == "canary":
        message = "Canary releases are not available yet; request production or staging."
        raise BadInput(message, [Problem("/stage", message)])
    if stage not in STAGES:
        message = f"{stage[:40]!r} is not a stage; choose production or staging"
        raise BadInput(message, [Problem("/stage", message)])


def _check_comment(comment: str) -> None:
    if len(comment) > COMMENT_LIMIT:
        message = f"A comment may have at most {COMMENT_LIMIT:,} characters."
        raise BadInput(message, [Problem("/comment", message)])


def _check_version(version: ModelVersion, endpoint: Endpoint, stage: str) -> None:
    if version.state != ModelVersion.State.CANDIDATE:
        why = "is being validated; try again in a moment"
        if version.state == ModelVersion.State.INVALID:
            why = "failed its validation and cannot be served"
        raise Conflict(f"{version} {why}.", code="version_not_ready")
    if stage == "staging":
        releases.require_up(endpoint)
    current = endpoint.production_id if stage == "production" else endpoint.staging_id
    if current == version.pk and not endpoint.is_down:
        raise Conflict(f"{version} is already in {stage}.", code="already_there")
    twin = PromotionRequest.objects.open().filter(version=version, stage=stage).first()
    if twin is not None:
        raise Conflict(
            f"Request {twin.pk} for the same version and stage is {twin.state}.", code="already_requested"
        )


def _start_gates(promotion: PromotionRequest, endpoint: Endpoint, *, by: User) -> None:
    """Bind the request to the current champion, and queue its gates against that version.

    The gates keep the rules from the time of the request.
    """
    promotion.baseline_version = endpoint.production
    promotion.baseline_generation = endpoint.generation
    promotion.gates = []
    promotion.state = State.GATING
    promotion.gate_job = _queue_gates(promotion, by=by)
    promotion.save(update_fields=["baseline_version", "baseline_generation", "gates", "state", "gate_job"])


def _queue_gates(promotion: PromotionRequest, *, by: User) -> Job:
    """Queue the job that compares a promotion's version with the champion."""
    version, champion = promotion.version, promotion.baseline_version
    champion_code = champion.needed_code if champion is not None else None
    code = version.needed_code or champion_code
    return submit.queue(
        GatePayload(promotion=promotion.pk, code=code.digest if code is not None else None),
        project=promotion.model.project,
        title=f"Gates of {promotion.version}",
        priority=90,
        created_by=by,
        **submit.placement_like(version.source_job) | submit.devices_like(version.source_job),
    )


def record_gates(job: Job, reported: Any) -> None:
    """Store the gates that a gate job reported. An outdated gate job is ignored."""
    _apply_gates(job, gates.read_result(reported))


def record_gate_failure(job: Job, error: dict[str, Any]) -> None:
    """Store that the gates could not be run, so that the request cannot be approved."""
    _apply_gates(job, [gates.failed_gate(str(error.get("message", "the gate job failed")))])


def _apply_gates(job: Job, results: Sequence[Gate]) -> None:
    with transaction.atomic():
        # Only the request's current gate job counts: an earlier one compared with another champion.
        promotion = PromotionRequest.objects.select_related("model__project").filter(gate_job=job).first()
        if promotion is None:
            return
        _lock_endpoint(promotion)
        all_gates = [*results, *gates.authorship_gates(promotion)]
        failed = gates.failed_names(all_gates)
        changed = PromotionRequest.objects.filter(gate_job=job, state=State.GATING).update(
            gates=[gate.model_dump(mode="json") for gate in all_gates],
            state=State.FAILED if failed else State.PENDING,
            decided=clock.now() if failed else None,
        )
        if changed:
            promotion.refresh_from_db(fields=["state"])
            _audit_request("gated", promotion, by=None, state=promotion.state, failed=failed)


def approve(
    promotion: PromotionRequest, *, accept: Iterable[str] = (), comment: str = "", by: User
) -> PromotionRequest:
    """Approve a request and release its version, in one transaction.

    The approval is bound to the version's digest, the gates' results and the endpoint's generation. If the
    endpoint has changed since the gates ran, they are queued again and nothing is approved.

    Raises:
        Forbidden: `by` is not an approver, or is the requester or the version's author.
        GatesOpen: a gate without a result is not in `accept`.
        StaleState: the request is not pending, or the champion has changed.
        Conflict: the stored file was altered.
    """
    _check_comment(comment)
    require_independent(promotion, by)
    # Before any lock, since it reads the whole file.
    _require_unaltered_files(promotion.version)
    with transaction.atomic():
        promotion, endpoint = _locked_with_endpoint(promotion)
        refusal = _why_stale(promotion, endpoint, by=by)
        if refusal is None:
            accepted = gates.require_accepted(read_gates(promotion), accept)
            _close_request(promotion, State.APPROVED, "approve", comment, by=by, accept=accepted)
            publish = (
                releases.put_into_production if promotion.stage == "production" else releases.put_on_staging
            )
            promotion.generation = publish(endpoint, promotion, by=by).generation
            promotion.save(update_fields=["generation"])
    # Raised after the commit, so that the expiry or the new gate job is kept.
    if refusal is not None:
        raise refusal
    return promotion


def _why_stale(promotion: PromotionRequest, endpoint: Endpoint, *, by: User) -> StaleState | None:
    """Return why the request cannot be approved. Expires it, or queues its gates again, if necessary."""
    if promotion.state != State.PENDING:
        return StaleState(f"Request {promotion.pk} is {promotion.state}, not pending.")
    if promotion.expires <= clock.now():
        _expire_request(promotion)
        return StaleState(
            f"Request {promotion.pk} expired on {promotion.expires:%Y-%m-%d %H:%M} UTC; create a new one."
        )
    if promotion.baseline_generation != endpoint.generation:
        _start_gates(promotion, endpoint, by=by)
        _audit_request("regate", promotion, by=by, generation=endpoint.generation)
        return StaleState(
            f"{endpoint.model.name} changed since the gates of request {promotion.pk} ran; "
            "they are running again against the current champion. Review the new results, then decide."
        )
    return None


def _require_unaltered_files(version: ModelVersion) -> None:
    """Check that a version's file, and each file in the code that it needs, is the registered one."""
    digest = sha256_of(store().path(version.artifact_id)).digest
    if digest != version.artifact_id:
        raise Conflict(
            f"The file of {version} has digest {digest[:12]} instead of {version.artifact_id[:12]}: "
            "it was altered after it was stored.",
            code="artifact_altered",
        )
    code = version.needed_code
    if code is None:
        return
    files = [(file.path, sha256_of(store().path(file.artifact_id))) for file in files_of(code)]
    if (digest := digest_of(files)) != code.digest:
        raise Conflict(
            f"The code of {version} has digest {digest[:12]} instead of {code.digest[:12]}: "
            "it was altered after it was stored.",
            code="artifact_altered",
        )


def reject(promotion: PromotionRequest, *, comment: str = "", by: User) -> PromotionRequest:
    """Reject a request.

    Raises:
        Forbidden: `by` may not decide on the request.
        StaleState: the request is not open.
    """
    _check_comment(comment)
    require_independent(promotion, by)
    with transaction.atomic():
        promotion, _ = _locked_with_endpoint(promotion)
        _close_request(promotion, State.REJECTED, "reject", comment, by=by)
    return promotion


def withdraw(promotion: PromotionRequest, *, comment: str = "", by: User) -> PromotionRequest:
    """Withdraw a request. Its requester and the project's admins may do this.

    Raises:
        Forbidden: `by` is neither.
        StaleState: the request is not open.
    """
    _check_comment(comment)
    project = promotion.model.project
    if by.pk != promotion.requested_by_id:
        access.require(by, project, Action.MANAGE)
    # A requester may have left the project.
    access.require(by, project, Action.VIEW)
    with transaction.atomic():
        promotion, _ = _locked_with_endpoint(promotion)
        _close_request(promotion, State.WITHDRAWN, "withdraw", comment, by=by)
    return promotion


def comment(promotion: PromotionRequest, text: str, *, by: User) -> Decision:
    """Add a comment to a request. Every user who can read the request may do this.

    Raises:
        BadInput: the text is empty.
        Conflict: the request has `MAX_COMMENTS` comments.
    """
    access.require(by, promotion.model.project, Action.VIEW)
    _check_comment(text)
    if not text.strip():
        raise BadInput("A comment needs some text.", [Problem("/comment", "enter a comment")])
    with transaction.atomic():
        # Locked, so that concurrent comments are counted one after another.
        PromotionRequest.objects.select_for_update().get(pk=promotion.pk)
        if promotion.decisions.filter(verdict="comment").count() >= MAX_COMMENTS:
            raise Conflict(f"Request {promotion.pk} has {MAX_COMMENTS} comments, which is the limit.")
        decision = _add_decision(promotion, "comment", text, by=by)
        _audit_request("comment", promotion, by=by)
    return decision


def expire_due() -> int:
    """Expire the open requests past their expiry time. Return how many."""
    due = PromotionRequest.objects.open().filter(expires__lte=clock.now())
    return for_each(due.select_related("model__project"), _expire_request)


@transaction.atomic
def _expire_request(promotion: PromotionRequest) -> bool:
    _lock_endpoint(promotion)
    open_still = PromotionRequest.objects.open().filter(pk=promotion.pk)
    if not open_still.update(state=State.EXPIRED, decided=clock.now()):
        return False
    _audit_request("expire", promotion, by=None)
    return True


def _lock_endpoint(promotion: PromotionRequest) -> Endpoint:
    """Lock a request's endpoint. It comes before the request in every transaction, against deadlocks."""
    return releases.lock_endpoint(Endpoint.objects.get(model=promotion.model_id))


def _locked_with_endpoint(promotion: PromotionRequest) -> tuple[PromotionRequest, Endpoint]:
    """Return the request and its endpoint, locked until the transaction ends."""
    endpoint = _lock_endpoint(promotion)
    # Read again with its relations, as in `releases.lock_endpoint`.
    PromotionRequest.objects.select_for_update(no_key=True).get(pk=promotion.pk)
    related = ("model__project", "version__artifact", "version__model", "requested_by", "baseline_version")
    return PromotionRequest.objects.select_related(*related).get(pk=promotion.pk), endpoint


def _close_request(
    promotion: PromotionRequest,
    to: State,
    verdict: str,
    text: str,
    *,
    by: User,
    accept: Sequence[str] = (),
) -> None:
    """Close a request by compare-and-set, with the decision and its audit row."""
    # A request can be rejected or withdrawn before its gates have ended, but not approved.
    expected = (State.PENDING,) if to == State.APPROVED else PromotionRequest.OPEN
    now = clock.now()
    rows = PromotionRequest.objects.filter(pk=promotion.pk, state__in=expected)
    if not rows.update(state=to, decided=now):
        raise StaleState(f"Request {promotion.pk} is {promotion.state}; it cannot become {to} now.")
    promotion.state, promotion.decided = to, now
    _add_decision(promotion, verdict, text, by=by, accept=accept)
    _audit_request(
        verdict,
        promotion,
        by=by,
        digest=promotion.version.identity,
        accept=list(accept),
        gates={gate.name: gate.state for gate in read_gates(promotion)},
        baseline_generation=promotion.baseline_generation,
        single_person=promotion.single_person,
    )


def _add_decision(
    promotion: PromotionRequest, verdict: str, text: str, *, by: User, accept: Sequence[str] = ()
) -> Decision:
    return Decision.objects.create(
        promotion=promotion,
        user=by,
        verdict=verdict,
        comment=text.strip(),
        accept=list(accept),
        digest=promotion.version.identity,
    )


def _audit_request(verb: str, promotion: PromotionRequest, *, by: User | None, **detail: Any) -> None:
    audit.record(
        f"promotion.{verb}", f"promotion:{promotion.pk}", by=by, project=promotion.model.project, **detail
    )
