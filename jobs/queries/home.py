"""Reads the home page's contents, and the counts in the navigation."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from jobs import access, clock
from jobs.models import ApiToken, Job, Project, PromotionRequest, Trial, User
from jobs.queries.dismissals import Need, Thing, dismissed_needs, need_of, without_dismissed
from jobs.queries.registry.authors import files_of
from jobs.queries.runs import progress
from jobs.queries.runs.open_failures import open_failures
from jobs.queries.search import outcomes
from jobs.states import ACTIVE, FINAL

MAX_ITEMS = 6
"""The most items in each list on the page."""

FAILED_WITHIN = timedelta(days=3)
EXPIRES_WITHIN = timedelta(days=7)

SPARK_POINTS = 60
"""How many of the newest trials' scores a sparkline has."""


def approvals_to_decide(user: User) -> QuerySet[PromotionRequest]:
    """Return the pending promotion requests that `user` may decide. Their own are left out."""
    if not user.is_active:
        return PromotionRequest.objects.none()
    requests = _to_decide(user.pk, is_admin=user.is_superuser)
    if issuers := user.login_issuers:
        # A session from a login link decides nothing of the people who made it.
        requests = requests.exclude(_concerns_people(issuers)).exclude(requested_by_issuers__in=issuers)
    return requests


def count_approvals_to_decide(user: User) -> int:
    """Count the requests that `user` may decide."""
    # Every page asks, and building the whole statement takes longer than all others of a page.
    pending = PromotionRequest.objects.filter(state=PromotionRequest.State.PENDING)
    return approvals_to_decide(user).count() if pending.exists() else 0


def _to_decide(person: int, *, is_admin: bool) -> QuerySet[PromotionRequest]:
    pending = access.promotions_for_approvers(person, is_admin=is_admin).filter(
        state=PromotionRequest.State.PENDING,
        # The scheduler closes it a little later, or, while it is stopped, much later.
        expires__gt=clock.estimate(),
    )
    independent = pending.filter(Q(single_person=True) | ~_concerns_people([person]))
    return independent.exclude(requested_by_issuers=person)


def _concerns_people(people: Collection[int]) -> Q:
    """Build a filter for these people's requests, and for requests about versions that they made."""
    return Q(requested_by__in=people) | Q(version__artifact__in=files_of(people))


@dataclass(frozen=True)
class Running:
    """A running root job with its progress and its trials' scores as a sparkline.

    Attributes:
        job: the job.
        progress: its progress.
        spark: the sparkline's points.
        best: its trials' best score.
        metric: the scores' metric.
    """

    job: Job
    progress: progress.Progress
    spark: str
    best: float | None
    metric: str = ""


@dataclass(frozen=True)
class Needs:
    """What needs a person: requests to decide, failed jobs, tokens that end.

    Attributes:
        approvals, failures, expiring: those that the person has not dismissed.
        dismissed: how many others the person has dismissed.
    """

    approvals: list[PromotionRequest]
    failures: list[Job]
    expiring: list[ApiToken]
    dismissed: int

    @property
    def needs(self) -> list[Need]:
        """Return them all, as they are dismissed."""
        things: list[Thing] = [*self.approvals, *self.failures, *self.expiring]
        return [need_of(thing) for thing in things]


@dataclass(frozen=True)
class Home:
    """The home page's contents except the workers."""

    approvals: list[PromotionRequest]
    failures: list[Job]
    expiring: list[ApiToken]
    dismissed: int
    running: list[Running]
    finished: list[Job]
    is_new: bool

    @property
    def needs(self) -> int:
        """Count the items that need the user's action."""
        return len(self.approvals) + len(self.failures) + len(self.expiring)


def home_page(user: User, project: Project | None = None) -> Home:
    """Return the home page's contents for `user`, of one project or of all."""
    roots = access.visible_jobs(user).roots().filter(project__isnull=False)
    if project is not None:
        roots = roots.filter(project=project)
    roots = roots.select_related("project", "created_by", "experiment", "revision")
    active = roots.filter(state__in=ACTIVE).order_by("-started")
    final = roots.filter(state__in=FINAL).exclude(finished=None)
    needs = needs_of(user, project)
    return Home(
        approvals=needs.approvals,
        failures=needs.failures,
        expiring=needs.expiring,
        dismissed=needs.dismissed,
        running=[_running_job(job) for job in active[:MAX_ITEMS]],
        finished=list(final.order_by("-finished")[:MAX_ITEMS]),
        is_new=not roots.exists(),
    )


def needs_of(user: User, project: Project | None = None) -> Needs:
    """Return what needs `user` in one project or in all, without dismissed things."""
    now = clock.estimate()
    dismissed = dismissed_needs(user)
    # So many that enough remain.
    limit = MAX_ITEMS + len(dismissed)
    to_decide = approvals_to_decide(user).select_related("model", "version", "requested_by")
    if project is not None:
        to_decide = to_decide.filter(model__project=project)
    requests = list(to_decide.prefetch_related("decisions").order_by("expires")[:limit])
    failed = open_failures(user, since=now - FAILED_WITHIN, limit=limit, project=project)
    tokens = list(_expiring_tokens(user, now).order_by("expires")[:limit])
    approvals = without_dismissed(requests, dismissed)
    failures = without_dismissed(failed, dismissed)
    expiring = without_dismissed(tokens, dismissed)
    hidden = len(requests) + len(failed) + len(tokens) - len(approvals) - len(failures) - len(expiring)
    return Needs(approvals[:MAX_ITEMS], failures[:MAX_ITEMS], expiring[:MAX_ITEMS], hidden)


def _expiring_tokens(user: User, now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens that expire soon and that no other token with the same name outlives."""
    longer = Q(expires=None) | Q(expires__gt=OuterRef("expires"))
    successor = ApiToken.objects.filter(longer, user=user, name=OuterRef("name")).exclude(name="")
    tokens = ApiToken.objects.filter(user=user, expires__gt=now, expires__lt=now + EXPIRES_WITHIN)
    return tokens.exclude(Exists(successor))


def _running_job(job: Job) -> Running:
    if not job.facts.has_trials:
        return Running(job, progress.progress_of_job(job), spark="", best=None)
    rows = Trial.objects.filter(job=job, score__isnull=False).order_by("-number")
    newest = [score for score in rows.values_list("score", flat=True)[:SPARK_POINTS] if score is not None]
    # The best trial may be older than those of the sparkline.
    best = outcomes.best_trials(job, limit=1).first()
    metric = outcomes.objective_of(job).metric
    return Running(
        job,
        progress.progress_of_job(job),
        sparkline_points(newest[::-1]),
        best.score if best else None,
        metric,
    )


def sparkline_points(values: list[float], width: float = 96, height: float = 24) -> str:
    """Return a sparkline's points, for an SVG polyline.

    >>> sparkline_points([1.0, 3.0, 2.0], width=10, height=4)
    '0.0,4.0 5.0,0.0 10.0,2.0'

    A single value is a dot: a line without length, with round ends.

    >>> sparkline_points([1.0], width=10, height=4)
    '5.0,2.0 5.0,2.0'
    """
    if not values:
        return ""
    if len(values) == 1:
        return f"{width / 2:.1f},{height / 2:.1f} {width / 2:.1f},{height / 2:.1f}"
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = width / (len(values) - 1)
    # SVG's y axis points down.
    return " ".join(f"{i * step:.1f},{height - (v - low) / span * height:.1f}" for i, v in enumerate(values))
