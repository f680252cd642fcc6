"""Changes the rules for a model's gates. Each change is a new revision; revisions are never changed."""

from django.db import transaction

from jobs import access
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.errors import BadInput, Forbidden, StaleState
from jobs.models import GateRevision, RegisteredModel, User
from jobs.queries.registry import gate_rules as queries
from jobs.queries.registry import versions
from jobs.spec.gates import GateRules
from jobs.spec.problems import Problem

COMMENT_LIMIT = 2000


def change_rules(
    model: RegisteredModel, rules: GateRules, *, comment: str = "", seen: int | None = None, by: User
) -> GateRevision | None:
    """Save the rules as the next revision. Open requests keep the revision that they were made under.

    Args:
        model: the model.
        rules: all rules; they replace the earlier ones.
        comment: why they are changed.
        seen: the number of the revision that the caller read; None accepts any.
        by: an approver.

    Returns:
        The newest revision; None if nothing was changed and the defaults apply.

    Raises:
        Forbidden: `by` is not an approver.
        StaleState: another revision was saved since `seen`. Nothing was changed.
        BadInput: a metric is not measured for the task of the model's versions.
    """
    _require_valid(model, rules, comment, by)
    with transaction.atomic():
        # The row of the model orders concurrent changes.
        RegisteredModel.objects.select_for_update(of=("self",), no_key=True).get(pk=model.pk)
        newest = queries.current_revision(model)
        number = queries.revision_number(newest)
        if seen is not None and seen != number:
            raise StaleState(
                f"The gates of {model.name} are at revision {number}, not {seen}: read them again."
            )
        if rules == queries.rules_of(newest):
            return newest
        return _create_revision(model, rules, newest, comment=comment.strip(), by=by)


def _create_revision(
    model: RegisteredModel, rules: GateRules, newest: GateRevision | None, *, comment: str, by: User
) -> GateRevision:
    """Create the revision after the newest one, with its audit row."""
    revision = GateRevision.objects.create(
        model=model,
        number=queries.revision_number(newest) + 1,
        rules_json=rules.model_dump(mode="json"),
        comment=comment,
        created_by=by,
    )
    audit.record(
        "gates.change",
        f"model:{model.name}",
        by=by,
        project=model.project,
        revision=revision.number,
        differences=rules.differences(queries.rules_of(newest)),
        comment=comment,
    )
    return revision


def _require_valid(model: RegisteredModel, rules: GateRules, comment: str, by: User) -> None:
    """Refuse a change by a user who may not approve, a long comment, and unknown metrics."""
    access.require(by, model.project, Action.APPROVE)
    if by.is_service:
        raise Forbidden("A service account cannot change gates.")
    if len(comment) > COMMENT_LIMIT:
        message = f"A comment may have at most {COMMENT_LIMIT:,} characters."
        raise BadInput(message, [Problem("/comment", message)])
    _check_metrics(model, rules)


def _check_metrics(model: RegisteredModel, rules: GateRules) -> None:
    """Refuse metrics that the newest version's predictions do not have; all fit if its data are unknown."""
    task = versions.task_of_model(model)
    problems = rules.problems(task) if task is not None else []
    if problems:
        raise BadInput(
            problems[0].message,
            [Problem(f"/rules{problem.pointer}", problem.message) for problem in problems],
        )
