"""Forms that are sent with one value of a field and then with another, after which other rows must be stored.

`effects_elsewhere.py` names the tests of the other forms. The form of experiments has its fields in
`tests/engine/fields`.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from jobs import models
from jobs.actions.data.credentials import secret_of
from jobs.queries.people.quotas import quotas_revision
from tests import factories
from tests.people import People
from tests.web.searches import DROPOUT, searching

TOMORROW = timezone.now() + timedelta(days=1)
Entries = dict[str, Any]


class Page(NamedTuple):
    """A form on a page.

    Attributes:
        path: of the page, with the names of `Rows` in braces.
        entries: the values that are sent; a function of the rows where it depends on them.
        changes: other entries by the field that they change. None leaves an entry out.
        look: returns the stored rows.
        who: sends it.
        method: of a request with JSON; empty for a form.
    """

    path: str
    entries: Entries | Callable[["Rows"], Entries]
    changes: Mapping[str, Entries]
    look: Callable[[], Any]
    who: str = "administrator"
    method: str = ""


class Rows(NamedTuple):
    """The keys of the rows that forms change."""

    people: People
    job: int
    search: int
    experiment: int


def make_rows(people: People) -> Rows:
    """Make two workers, a model with two versions, a queued job, a running search and an experiment."""
    for pool in ("default", "large"):
        factories.make_worker(f"box-{pool}", slots=4, pool=pool)
    yard, owner = people.project, people.owner
    factories.make_model("pets", project=yard, by=owner, versions=2)
    experiment = factories.make_experiment("try", project=yard, by=owner)
    job = factories.make_job(by=owner, experiment=experiment, kind="train")
    return Rows(people, job.pk, searching(people, [DROPOUT]).pk, experiment.pk)


def rows_of(model: Any, *fields: str) -> Callable[[], Any]:
    """Return what reads these fields in all rows of a model, in their order."""
    return lambda: list(model.objects.order_by("pk").values_list(*fields))


RESERVED = rows_of(
    models.Reservation, "pool", "worker", "slots", "begins", "ends", "person", "project", "note"
)


def _moment(hours: int) -> str:
    return f"{TOMORROW + timedelta(hours=hours):%Y-%m-%dT%H:%M}"


def _secrets() -> Any:
    return [(row.name, secret_of(row)) for row in models.Credential.objects.all()]


def _tokens() -> Any:
    rows = models.ApiToken.objects.order_by("pk")
    return [
        (row.name, row.scopes, row.endpoints, row.expires and (row.expires - row.created).days)
        for row in rows
    ]


def _rules() -> Any:
    return [(row.rules.model_dump(), row.comment) for row in models.GateRevision.objects.order_by("pk")]


def _credential(kind: str, entries: Entries, **changes: Any) -> Page:
    others = {name: {name: value} for name, value in changes.items()}
    return Page(f"/p/yard/credentials/new?kind={kind}", entries, others, _secrets)


GATES = {
    "metric": "f1_macro", "tolerance": "0.02", "latency_p95_ms": "50", "comment": "why", "revision": "0",
    "floors-rows": "1", "floors-0-metric": "accuracy", "floors-0-limit": "0.9", "slices-rows": "1",
    "slices-0-column": "city", "slices-0-value": "Rome", "slices-0-metric": "accuracy",
    "slices-0-limit": "0.8", "slices-0-min_rows": "30",
}  # fmt: skip
REVISED = {
    "revise-revision": "1", "revise-max_trials": "9", "revise-max_consecutive_failures": "3",
    "revise-dropout:min": "0.0", "revise-dropout:max": "0.5",
}  # fmt: skip
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


def _gates(prefix: str, **changes: str) -> Page:
    others = {name: {f"{prefix}{name}": value} for name, value in changes.items()}
    return Page("/models/pets/gates", GATES, others, _rules, "approver")


PAGES: dict[str, Page] = {
    "ReservationForm": Page(
        "/workers/reservations",
        {"pool": "default", "user": "member", "begins": _moment(0), "ends": _moment(3), "note": "demo"},
        {
            "pool": {"pool": "large"},
            "worker": {"worker": "box-default"},
            "slots": {"slots": "2"},
            "begins": {"begins": _moment(1)},
            "ends": {"ends": _moment(4)},
            "user": {"user": "trainer"},
            "project": {"user": "", "project": "yard"},
            "note": {"note": "for a customer"},
        },
        RESERVED,
    ),
    "SlotsForm": Page(
        "/people/member/slots",
        {"max_slots": "3"},
        {"max_slots": {"max_slots": "4"}},
        rows_of(models.User, "max_slots"),
    ),
    "QuotasForm": Page(
        "/p/yard/quotas",
        lambda rows: {"revision": quotas_revision(rows.people.project)},
        {
            **{name: {name: "7"} for name in ("slots", "bytes", "jobs", "uploads", "events")},
            "revision": {"revision": "an earlier one"},
        },
        rows_of(models.Project, "max_slots", "max_bytes", "max_jobs", "max_uploads", "max_events"),
    ),
    "ChangeForm": Page(
        "/queue/{job}/change",
        {"priority": "60", "pool": "default"},
        {"priority": {"priority": "70"}, "pool": {"pool": "large"}},
        rows_of(models.Job, "priority", "pool"),
    ),
    "PreemptionForm": Page(
        "/workers/pools/default/preemption",
        {"on": "0"},
        {"on": {"on": "1"}},
        rows_of(models.PoolSettings, "pool", "preemption"),
    ),
    "ProjectForm": Page(
        "/projects/new",
        {"name": "Vision", "slug": "vision"},
        {"name": {"name": "Sight"}, "slug": {"slug": "sight"}},
        rows_of(models.Project, "name", "slug"),
    ),
    "ProjectSettingsForm": Page(
        "/p/yard/settings",
        {"name": "The yard"},
        {"name": {"name": "Yard"}, "single_person": {"single_person": "on"}},
        rows_of(models.Project, "name", "single_person"),
    ),
    "MemberForm": Page(
        "/p/yard/members",
        {"user": "stranger", "role": "member"},
        {"user": {"user": "administrator"}, "role": {"role": "viewer"}},
        rows_of(models.Membership, "user", "role"),
    ),
    "PersonForm": Page(
        "/people",
        {"username": "grace", "project": "", "role": "member"},
        {
            "username": {"username": "linus"},
            "admin": {"admin": "on"},
            "project": {"project": "yard"},
            "role": {"project": "yard", "role": "viewer"},
        },
        lambda: [
            rows_of(models.User, "username", "is_superuser")(),
            rows_of(models.Membership, "user", "role")(),
        ],
    ),
    "TokenForm": Page(
        "/tokens",
        {"name": "ci", "scopes": ["predict"], "endpoints": "", "days": "90"},
        {
            "name": {"name": "nightly"},
            "scopes": {"scopes": ["predict", "read"]},
            "endpoints": {"endpoints": "pets"},
            "days": {"days": "30"},
        },
        _tokens,
        "owner",
    ),
    "NetworkForm": Page(
        "/p/yard/network",
        {"network": "on", "seen": "0"},
        {"network": {"network": None}, "seen": {"seen": "1"}},
        rows_of(models.Project, "network"),
    ),
    "SandboxForm": Page(
        "/settings",
        {"sandbox_minimum": "bubblewrap", "seen": "landlock"},
        {"sandbox_minimum": {"sandbox_minimum": "process"}, "seen": {"seen": "bubblewrap"}},
        rows_of(models.InstallationSettings, "sandbox_minimum"),
    ),
    "CredentialForm": _credential("bearer", {"name": "web", "host": "a.org", "token": "1"}, name="net"),
    "BearerForm": _credential(
        "bearer", {"name": "web", "host": "a.org", "token": "1"}, name="net", host="b.org", token="2"
    ),
    "BasicForm": _credential(
        "basic",
        {"name": "web", "host": "a.org", "user": "ada", "password": "1"},
        name="net",
        host="b.org",
        user="eve",
        password="2",
    ),
    "S3Form": _credential(
        "s3",
        {"name": "s3", "key_id": "AK", "secret": "1", "region": "eu-west-1", "endpoint": ""},
        name="net",
        key_id="BK",
        secret="2",
        region="eu-central-1",
        endpoint="https://s3.example.org",
    ),
    "ModelForm": Page(
        "/models/new",
        {"project": "yard", "name": "cats", "description": "of cats"},
        {
            "project": {"project": "elsewhere"},
            "name": {"name": "dogs"},
            "description": {"description": "of dogs"},
        },
        rows_of(models.RegisteredModel, "project__slug", "name", "description"),
    ),
    "AliasForm": Page(
        "/models/pets/aliases",
        {"alias": "best", "version": "1"},
        {"alias": {"alias": "newest"}, "version": {"version": "2"}},
        rows_of(models.Alias, "name", "version__number"),
        "owner",
    ),
    "CardForm": Page(
        "/models/pets/versions/1/card",
        {"card": "about cats", "seen": ""},
        {"card": {"card": "about dogs"}, "seen": {"seen": "0" * 64}},
        rows_of(models.ModelVersion, "card"),
        "owner",
    ),
    "PromotionForm": Page(
        "/models/pets/versions/1/promote",
        {"stage": "production", "comment": "the best"},
        {"stage": {"stage": "staging"}, "comment": {"comment": "the newest"}},
        rows_of(models.PromotionRequest, "stage", "comment"),
        "owner",
    ),
    "NotesForm": Page(
        "/p/yard/experiments/{experiment}/notes",
        {"notes": "first", "tags": "a", "seen": ""},
        {"notes": {"notes": "second"}, "tags": {"tags": "a, b"}, "seen": {"seen": "0" * 64}},
        rows_of(models.Experiment, "notes", "tags"),
        "owner",
    ),
    "RulesForm": _gates(
        "", metric="accuracy", tolerance="0.03", latency_p95_ms="60", comment="other", revision="7"
    ),
    "FloorForm": _gates("floors-0-", metric="f1_macro", limit="0.7"),
    "SliceForm": _gates(
        "slices-0-", column="town", value="Oslo", metric="f1_macro", limit="0.7", min_rows="40"
    ),
    "ReviseForm": Page(
        "/jobs/{search}/revise",
        REVISED,
        {
            name: {f"revise-{name}": value}
            for name, value in {
                "revision": "7",
                "max_trials": "8",
                "max_minutes": "5",
                "parallel_trials": "2",
                "max_consecutive_failures": "4",
                "comment": "dear",
            }.items()
        },
        rows_of(models.Revision, "spec_json", "reason"),
        "owner",
    ),
}
"""By the name of the form's class; preemption has only a button."""
