"""Migrates audit chains that were written by the old rule."""

import datetime as dt
import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from jobs.actions.audit import audit
from jobs.models import AuditEvent, AuditHead, Project
from jobs.queries.audit.audit_verification import ChainState, verify_chain
from tests.database import earlier, migrate, upgrade, upgrade_rows

OLD, NEW = ("jobs", "0026_project_quotas"), ("jobs", "0025_audit_chain")
ROWS = 7
TABLES = ("jobs_auditevent", "jobs_audithead")

pytestmark = pytest.mark.django_db(transaction=True)
# There the migration differs only in its end, with rows or without: a valid chain and a changed row show it.
SAME_ON_POSTGRES = pytest.mark.skipif(connection.vendor != "sqlite", reason="equal on every database")


class OldYard:
    """A database from the last version with the old chain."""

    def __init__(self, apps: Any) -> None:
        self.apps = apps
        user = self.apps.get_model("jobs", "User").objects.create(username="ada")
        projects = self.apps.get_model("jobs", "Project")
        self.project = projects.objects.create(slug="yard", name="Yard", created_by=user)
        self.events = self.apps.get_model("jobs", "AuditEvent").objects
        self.heads = self.apps.get_model("jobs", "AuditHead").objects
        previous = "0" * 64
        for number in range(1, ROWS + 1):
            # Ids with gaps, as after transactions that failed.
            previous = self._append(previous, pk=number * 10, actor=user, detail={"big": 1e20, "n": number})
        self.heads.create(pk=1, hash=previous, count=ROWS)

    def _append(self, previous: str, *, pk: int, actor: Any, detail: dict[str, Any]) -> str:
        time = dt.datetime(2026, 1, 1, 12, 0, pk % 60, 123456, tzinfo=dt.UTC)
        floats = json.loads(json.dumps(detail), parse_int=float)
        body = [previous, time.isoformat(), actor.pk, "job.pause", "job:1", floats]
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        row_hash = salted_hmac("trainyard.audit", text, algorithm="sha256").hexdigest()
        self.events.create(
            pk=pk,
            time=time,
            actor=actor,
            action="job.pause",
            target="job:1",
            project=self.project,
            detail=detail,
            previous_hash=previous,
            hash=row_hash,
        )
        return row_hash


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Iterator[OldYard]:
    # Several batches, with one that is not full.
    monkeypatch.setattr(import_module("jobs.migrations.0025_audit_chain"), "BATCH", 3)
    with earlier(OLD) as apps:
        yield OldYard(apps)


def test_a_valid_chain_is_made_again_by_the_new_rule(old: OldYard) -> None:
    migrate(NEW)
    upgrade()
    verdict = verify_chain()
    assert verdict.holds, verdict.message
    assert verdict.rows == ROWS + 1
    rows = list(AuditEvent.objects.order_by("number"))
    assert [row.number for row in rows] == list(range(1, ROWS + 2))
    assert [row.pk for row in rows] == [10, 20, 30, 40, 50, 60, 70, 71]
    assert rows[0].detail == {"big": 1e20, "n": 1}
    assert (rows[-1].action, rows[-1].detail["found"]) == ("audit.upgrade", "valid")
    AuditEvent.objects.filter(number=3).update(project=None)
    assert (verify_chain().state, verify_chain().row) == (ChainState.CHANGED, 30)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ("row", 40),
        *(
            pytest.param(*case, marks=SAME_ON_POSTGRES)
            for case in [("middle", 40), ("last", 61), ("head", 71), ("no head", 71)]
        ),
    ],
)
def test_a_broken_chain_is_kept_as_it_is_and_reported(old: OldYard, change: str, broken: int) -> None:
    if change == "row":
        old.events.filter(pk=40).update(target="job:9")
    elif change == "middle":
        old.events.filter(pk=30).delete()
    elif change == "last":
        old.events.filter(pk=70).delete()
    elif change == "head":
        old.heads.update(count=ROWS + 1)
    else:
        old.heads.all().delete()
    before = list(old.events.order_by("pk").values("pk", "target", "hash", "previous_hash", "project_id"))
    upgrade_rows(NEW, TABLES)
    events = AuditEvent.objects.exclude(action="audit.seal").order_by("pk")
    assert list(events.values("pk", "target", "hash", "previous_hash", "project_id")) == before
    verdict = verify_chain()
    assert (verdict.state, verdict.row, verdict.rows) == (ChainState.UNVERIFIED, broken, len(before) + 1)
    assert f"Row {broken} was the first that did not verify" in verdict.message
    events.filter(pk=10).update(target="job:8")
    assert verify_chain().state == ChainState.CHANGED


@SAME_ON_POSTGRES
def test_a_broken_chain_is_valid_once_it_is_accepted(old: OldYard) -> None:
    old.events.filter(pk=40).update(target="job:9")
    upgrade_rows(NEW, TABLES)
    call_command("audit", "seal", "--reason", "a test on the wrong database")
    assert verify_chain().holds
    assert "Row 40" in verify_chain().notes[0]


def test_an_installation_without_rows_gets_none(old: OldYard) -> None:
    old.events.all().delete()
    old.heads.all().delete()
    upgrade_rows(NEW, TABLES)
    assert not AuditEvent.objects.exists()
    assert not AuditHead.objects.exists()
    assert verify_chain().holds


@SAME_ON_POSTGRES
def test_rows_are_appended_after_an_upgrade_and_survive_the_end_of_a_project(old: OldYard) -> None:
    upgrade()
    project = Project.objects.get(slug="yard")
    with transaction.atomic():
        audit.record("project.rename", project, by=None, project=project)
    Project.objects.filter(pk=project.pk).delete()
    assert verify_chain().holds
    assert AuditEvent.objects.order_by("-number")[0].project_id == project.pk
