"""Queries whose SQL is compiled once. On PostgreSQL, `test_on_postgres` runs them too."""

import datetime as dt
from collections.abc import Callable
from threading import Thread

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import BigIntegerField, CharField, DateTimeField, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext

from jobs import clock
from jobs.models import Job, Worker
from jobs.prepared import Parameter, PreparedQuery
from jobs.queries.runs.devices import jobs_with_needs
from jobs.states import WAITING
from tests.architecture.sources import imports, modules
from tests.jobs.yard import PretendWorker, Yard

MINUTE = dt.timedelta(minutes=1)


def in_state() -> QuerySet[Job, tuple[int, str]]:
    """Return jobs of one state, whose value each call passes."""
    return Job.objects.filter(state=Parameter("state", CharField())).values_list("pk", "kind").order_by("pk")


def test_each_call_passes_its_own_parameters_and_reads_the_database_again(installation: Yard) -> None:
    query = PreparedQuery(in_state)
    assert query.rows(state="queued") == []
    first, second = installation.submit(), installation.submit()
    assert query.rows(state="queued") == [(first.pk, "train"), (second.pk, "train")]
    Job.objects.filter(pk=first.pk).update(state="running")
    assert query.rows(state="running") == [(first.pk, "train")]
    assert query.rows(state="queued") == [(second.pk, "train")]


def test_the_first_row_is_returned_or_none(installation: Yard) -> None:
    query = PreparedQuery(in_state)
    assert query.first(state="queued") is None
    first, _ = installation.submit(), installation.submit()
    assert query.first(state="queued") == (first.pk, "train")


def test_the_sql_is_compiled_once(installation: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    installation.submit()
    query = PreparedQuery(in_state)
    query.rows(state="queued")
    monkeypatch.setattr(SQLCompiler, "as_sql", lambda *_: pytest.fail("compiled again"))
    assert len(query.rows(state="queued")) == 1
    assert query.rows(state="failed") == []


def test_a_vendor_has_its_own_sql(installation: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def build() -> QuerySet[Job, tuple[int, str]]:
        built.append(connection.vendor)
        return in_state()

    vendor_here, query = connection.vendor, PreparedQuery(build)
    for vendor in (vendor_here, "other", vendor_here, "other"):
        monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "vendor", vendor)
        assert query.rows(state="queued") == []
    assert built == [vendor_here, "other"]


def test_times_are_compared_in_the_database_s_own_form(installation: Yard) -> None:
    worker = PretendWorker()
    query = PreparedQuery(
        lambda: Worker.objects.filter(lease_until__gt=Parameter("now", DateTimeField())).order_by("pk")
    )
    (row,) = query.rows(now=clock.now())
    assert (row.pk, row.lease_until) == (worker.row.pk, Worker.objects.get().lease_until)
    assert query.rows(now=row.lease_until - MINUTE)
    assert query.rows(now=row.lease_until + MINUTE) == []


def test_rows_have_their_joins_annotations_and_deferred_columns(installation: Yard) -> None:
    job = installation.submit()
    query = PreparedQuery(
        lambda: (
            jobs_with_needs(Job.objects.filter(state__in=WAITING)).select_related("project").defer("error")
        )
    )
    (row,) = query.rows()
    assert row == job
    assert vars(row)["mesh_json"] is None
    assert row.get_deferred_fields() == {"error"}
    with CaptureQueriesContext(connection) as later:
        assert row.project == installation.project
        assert row.payload_json == job.payload_json
    assert len(later) == 0


def test_none_is_refused_as_no_comparison_with_null_is_true(installation: Yard) -> None:
    with pytest.raises(TypeError, match="state: None is not a value of a prepared query"):
        PreparedQuery(in_state).rows(state=None)


def test_missing_and_unknown_parameters_are_refused(installation: Yard) -> None:
    query = PreparedQuery(in_state)
    for values in ({}, {"states": "queued"}, {"state": "queued", "pk": 1}):
        with pytest.raises(TypeError, match=r"the query has the parameters \['state'\]"):
            query.rows(**values)


def test_a_parameter_may_be_used_twice(installation: Yard) -> None:
    job, key = installation.submit(), Parameter("pk", BigIntegerField())
    query = PreparedQuery(lambda: Job.objects.filter(pk__gte=key, pk__lte=key))
    assert query.rows(pk=job.pk) == [job]
    assert query.rows(pk=job.pk + 1) == []


@pytest.mark.django_db(transaction=True)
def test_threads_share_the_sql_but_not_the_connection() -> None:
    PretendWorker()
    query = PreparedQuery(lambda: Worker.objects.filter(name=Parameter("name", CharField())))
    workers: list[Worker] = query.rows(name="w")

    def read() -> None:
        workers.extend(query.rows(name="w"))
        connection.close()

    thread = Thread(target=read)
    thread.start()
    thread.join(30)
    assert len(workers) == 2


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Job.objects.prefetch_related("attempts"), "prefetch_related"),
        (lambda: Job.objects.using(DEFAULT_DB_ALIAS), "using"),
        (lambda: Job.objects.locked(), "select_for_update"),
    ],
)
def test_what_a_prepared_query_would_ignore_is_refused(
    build: Callable[[], QuerySet[Job]], named: str, installation: Yard
) -> None:
    with pytest.raises(TypeError, match=named):
        PreparedQuery(build).rows()


def test_only_the_queries_of_every_request_and_heartbeat_are_prepared() -> None:
    """The queries for roles, a worker's new attempts, the token, the user and the session."""
    users = {name.rpartition(".")[2] for name in modules() if "jobs.prepared" in imports(name)}
    assert users == {"rights", "attempts", "tokens", "people", "session_store"}
