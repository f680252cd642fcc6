"""Seals and anchors of a broken chain, and the command and the page that verify it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.actions.audit import audit
from jobs.errors import Conflict
from jobs.models import AuditEvent, AuditHead, Project
from jobs.queries.audit import audit_anchors
from jobs.queries.audit.audit_anchors import Anchor
from jobs.queries.audit.audit_verification import ChainState, verify_chain
from tests.accounts.test_audit import OTHER_SECRET, append, delete, set_head, verify_at_the_terminal
from tests.people import People


@pytest.fixture
def chain(people: People) -> list[AuditEvent]:
    with transaction.atomic():
        return [
            audit.record(
                f"job.{verb}", "job:1", by=people.owner, project=people.project, number=1e20, share=0.1
            )
            for verb in ("submit", "pause", "resume")
        ]


@pytest.fixture
def anchor(chain: list[AuditEvent]) -> Anchor:
    """A copy of the chain's head."""
    head = audit_anchors.current_anchor()
    return Anchor(head.number, head.hash, "the copy")


def lose_the_key(_: list[AuditEvent], settings: object) -> None:
    settings.SECRET_KEY = OTHER_SECRET  # type: ignore[attr-defined]


def change_a_row(chain: list[AuditEvent], _: object) -> None:
    AuditEvent.objects.filter(pk=chain[0].pk).update(target="job:9")


def drop_the_last_row(chain: list[AuditEvent], _: object) -> None:
    delete(chain[2])


def drop_a_row(chain: list[AuditEvent], _: object) -> None:
    delete(chain[1])


def delete_the_head(_: list[AuditEvent], __: object) -> None:
    AuditHead.objects.all().delete()


BREAKS = [lose_the_key, change_a_row, drop_the_last_row, drop_a_row, delete_the_head]


@pytest.mark.parametrize("break_it", BREAKS)
def test_a_seal_accepts_a_broken_chain_and_keeps_the_result(
    people: People,
    chain: list[AuditEvent],
    settings: object,
    capsys: pytest.CaptureFixture[str],
    break_it: Callable[[list[AuditEvent], object], None],
) -> None:
    break_it(chain, settings)
    before = verify_chain()
    assert not before.holds
    call_command("audit", "seal", "--reason", "the disk was lost")
    append(people)
    verdict = verify_chain()
    assert verdict.holds, verdict.message
    assert "the disk was lost" in verdict.notes[0]
    assert before.message in verdict.notes[0]
    row = AuditEvent.objects.get(action="audit.seal")
    assert row.detail["found"] == before.state
    assert row.number == 4, "numbers of missing rows are not given again"
    assert row.pk > chain[2].pk, "nor are their ids"
    assert verify_at_the_terminal(capsys)[0] == 0


@pytest.mark.parametrize("break_it", [change_a_row, drop_the_last_row, drop_a_row])
def test_rows_before_a_seal_cannot_change_any_more(
    people: People,
    chain: list[AuditEvent],
    settings: object,
    break_it: Callable[[list[AuditEvent], object], None],
) -> None:
    lose_the_key(chain, settings)
    audit.seal_chain("the key was lost", by=people.owner)
    break_it(chain, settings)
    verdict = verify_chain()
    assert verdict.state == ChainState.CHANGED
    assert "A row before row" in verdict.message


def test_a_seal_does_not_hide_missing_rows_from_an_anchor(
    people: People, chain: list[AuditEvent], anchor: Anchor
) -> None:
    delete(chain[2])
    audit.seal_chain("to hide them", by=people.owner)
    assert verify_chain().holds
    verdict = verify_chain([anchor])
    assert (verdict.state, verdict.missing) == (ChainState.GAP, (3, 3))


def test_the_anchor_of_an_empty_chain_is_no_row(people: People, chain: list[AuditEvent]) -> None:
    assert verify_chain([Anchor(0, "0" * 64, "the copy")]).holds


def test_a_valid_chain_is_not_sealed(people: People, chain: list[AuditEvent]) -> None:
    with pytest.raises(Conflict):
        audit.seal_chain("in vain", by=people.owner)
    with pytest.raises(CommandError, match="valid"):
        call_command("audit", "seal", "--reason", "in vain")
    with pytest.raises(CommandError, match="--reason"):
        call_command("audit", "seal")
    assert AuditEvent.objects.count() == len(chain)


def test_the_command_names_the_row_and_ends_with_1(
    chain: list[AuditEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    AuditEvent.objects.filter(pk=chain[0].pk).update(target="job:9")
    status, printed = verify_at_the_terminal(capsys)
    assert status == 1
    assert f"Row {chain[0].pk} was changed" in printed
    assert "Result: changed" in printed


@pytest.fixture(params=["json", "log", "manifest"])
def anchor_file(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Path]:
    """The chain's head as it is printed, in a log and in a backup's manifest."""
    request.getfixturevalue("chain")
    call_command("audit", "anchor")
    printed = capsys.readouterr().out
    texts = {
        "json": printed,
        "log": f"12:00 scheduler started\n12:00 audit anchor {printed.strip()}\n12:01 other\n",
        "manifest": json.dumps({"format": 1, "audit": json.loads(printed)}, indent=1),
    }
    file = tmp_path / "anchor"
    file.write_text(texts[request.param])
    yield file


def test_the_command_compares_with_a_file(
    people: People, anchor_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(people)
    assert verify_at_the_terminal(capsys, "--anchor", str(anchor_file))[0] == 0
    delete(*AuditEvent.objects.filter(number__gte=3))
    set_head(AuditEvent.objects.get(number=2), with_key=True)
    assert verify_at_the_terminal(capsys)[0] == 0
    status, printed = verify_at_the_terminal(capsys, "--anchor", str(anchor_file))
    assert (status, str(anchor_file) in printed, "truncated" in printed) == (1, True, True)


def test_a_file_without_an_anchor_is_refused(chain: list[AuditEvent], tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("nothing")
    with pytest.raises(CommandError, match="no anchor"):
        call_command("audit", "verify", "--anchor", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("audit", "verify", "--anchor", str(tmp_path / "missing"))


def test_the_page_and_the_api_show_how_it_is_broken(
    people: People, chain: list[AuditEvent], admin: Client
) -> None:
    assert "All 3 rows" in admin.get("/audit/verify").content.decode()
    delete(chain[2])
    page = admin.get("/audit/verify").content.decode()
    assert "truncated" in page
    assert "The last rows are missing" in page
    answer = admin.get("/api/v1/audit/verify").json()
    assert answer["holds"] is False
    assert answer["state"] == "truncated"
    assert answer["missing"] == {"first": 3, "last": 3}
    assert (answer["broken"], answer["count"]) == (chain[1].pk + 1, 2)


@pytest.fixture
def admin(people: People) -> Client:
    client = Client()
    people.owner.is_superuser = True
    people.owner.save(update_fields=["is_superuser"])
    client.force_login(people.owner)
    return client


def test_a_deleted_project_leaves_the_chain_whole(
    people: People, chain: list[AuditEvent], admin: Client
) -> None:
    Project.objects.filter(pk=people.project.pk).delete()
    assert verify_chain().holds
    event = AuditEvent.objects.get(pk=chain[0].pk)
    assert (event.detail["project"], event.project_id) == ("yard", chain[0].project_id)
    assert admin.get("/audit").status_code == 200
    assert admin.get("/api/v1/audit").json()["items"][0]["project"] is None


@pytest.mark.django_db(transaction=True)
def test_a_row_without_a_transaction_is_refused() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        audit.record("job.pause", "job:1", by=None)


@pytest.mark.django_db(transaction=True)
def test_a_change_that_fails_leaves_no_row_and_no_gap() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit.record("job.pause", "job:1", by=None)
        raise ZeroDivisionError
    assert not AuditEvent.objects.exists()
    assert not AuditHead.objects.exists()
    with transaction.atomic():
        assert audit.record("job.pause", "job:1", by=None).number == 1
    assert verify_chain().holds


def test_a_row_costs_four_queries(people: People, chain: list[AuditEvent]) -> None:
    """The head is locked, the last id is read, the row is written, the head is written."""
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        audit.record("job.kill", "job:1", by=people.owner, project=people.project)
    reads_of_the_clock = [query for query in queries if "clock_timestamp" in query["sql"]]
    assert len(queries) - len(reads_of_the_clock) == 4
