import pytest
from django.core.management import call_command
from django.db import transaction

from jobs.actions import audit
from jobs.models import AuditEvent, AuditHead, Project
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


def test_an_unbroken_chain_verifies(chain: list[AuditEvent], capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.verify() is None
    call_command("audit", "verify")
    assert "valid: 3 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [{"action": "job.kill"}, {"actor": None}, {"target": "job:2"}, {"detail": {}}, {"hash": "0" * 64}],
)
def test_a_changed_row_is_found(chain: list[AuditEvent], change: dict[str, object]) -> None:
    AuditEvent.objects.filter(pk=chain[1].pk).update(**change)
    assert audit.verify() == chain[1].pk


def test_a_missing_row_is_found_at_the_next_one(chain: list[AuditEvent]) -> None:
    chain[0].delete()
    assert audit.verify() == chain[1].pk


def test_missing_last_rows_are_found_by_the_head(chain: list[AuditEvent]) -> None:
    last = chain[2].pk
    chain[2].delete()
    assert audit.verify() == chain[1].pk + 1 == last


def test_a_row_that_is_appended_during_the_verification_is_no_error(
    people: People, chain: list[AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    hash_of = audit.hash_of

    def appending(event: AuditEvent) -> str:
        monkeypatch.setattr(audit, "hash_of", hash_of)
        with transaction.atomic():
            audit.record("job.kill", "job:1", by=people.owner, project=people.project)
        return hash_of(event)

    monkeypatch.setattr(audit, "hash_of", appending)
    assert audit.verify() is None
    assert AuditEvent.objects.count() == len(chain) + 1


def test_a_broken_chain_ends_the_command_with_1(
    chain: list[AuditEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    AuditEvent.objects.filter(pk=chain[0].pk).update(target="job:9")
    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify")
    assert ended.value.code == 1
    assert f"row {chain[0].pk}" in capsys.readouterr().err


def test_a_deleted_project_leaves_the_chain_whole(people: People, chain: list[AuditEvent]) -> None:
    Project.objects.filter(pk=people.project.pk).delete()
    assert audit.verify() is None
    assert AuditEvent.objects.get(pk=chain[0].pk).detail["project"] == "yard"


@pytest.mark.django_db(transaction=True)
def test_a_row_without_a_transaction_is_refused() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        audit.record("job.pause", "job:1", by=None)


@pytest.mark.django_db(transaction=True)
def test_a_change_that_fails_leaves_no_row() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit.record("job.pause", "job:1", by=None)
        raise ZeroDivisionError
    assert not AuditEvent.objects.exists()
    assert not AuditHead.objects.exists()
