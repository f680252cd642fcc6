import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models import F

from jobs import audit_chain
from jobs.actions.audit import audit
from jobs.audit_chain import HEAD_ID
from jobs.models import AuditEvent, AuditHead, Project
from jobs.queries.audit import audit_anchors
from jobs.queries.audit.audit_anchors import Anchor
from jobs.queries.audit.audit_verification import ChainState, Verification, verify_chain
from tests.people import People

OTHER_SECRET = "another-secret-key-of-more-than-fifty-characters-0123456789"


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


def append(people: People, verb: str = "kill") -> AuditEvent:
    with transaction.atomic():
        return audit.record(f"job.{verb}", "job:1", by=people.owner, project=people.project)


def delete(*events: AuditEvent) -> None:
    AuditEvent.objects.filter(pk__in=[event.pk for event in events]).delete()


def set_head(event: AuditEvent, *, with_key: bool) -> None:
    """Make a row the head, as someone who does or does not know the secret key."""
    mac = audit_chain.head_mac(event.number, event.hash)
    AuditHead.objects.filter(pk=HEAD_ID).update(
        number=event.number, hash=event.hash, **({"mac": mac} if with_key else {})
    )


def verify_at_the_terminal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit status and the printed text."""
    capsys.readouterr()
    status: object = 0
    try:
        call_command("audit", "verify", *arguments)
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    assert isinstance(status, int)
    return status, printed.out + printed.err


def test_an_unbroken_chain_verifies(chain: list[AuditEvent], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_chain() == Verification(ChainState.VALID, "The audit chain is valid: 3 rows.", 3)
    assert verify_at_the_terminal(capsys) == (0, "The audit chain is valid: 3 rows.\n")


def test_a_chain_without_rows_verifies(people: People) -> None:
    assert verify_chain().holds


def test_the_hash_covers_every_field() -> None:
    """A new field must be added to `audit_chain.COVERED`, with a migration for the hashes."""
    columns = {field.attname for field in AuditEvent._meta.concrete_fields}
    assert columns == {*audit_chain.COVERED, "hash"}


CHANGES: dict[str, object] = {
    "id": 900,
    "number": 900,
    "time": "2020-01-01T00:00:00Z",
    "actor_id": None,
    "action": "job.kill",
    "target": "job:2",
    "project_id": None,
    "detail": {},
    "previous_hash": "1" * 64,
    "hash": "0" * 64,
}


def test_a_change_of_every_field_is_tried() -> None:
    assert set(CHANGES) == {*audit_chain.COVERED, "hash"}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_field_is_found(chain: list[AuditEvent], field: str) -> None:
    AuditEvent.objects.filter(pk=chain[2].pk).update(**{field: CHANGES[field]})
    verdict = verify_chain()
    assert verdict.state == ChainState.CHANGED
    assert verdict.row == (900 if field == "id" else chain[2].pk)


def test_another_project_of_a_row_is_found(people: People, chain: list[AuditEvent]) -> None:
    other = Project.objects.create(slug="other", name="Other", created_by=people.owner)
    AuditEvent.objects.filter(pk=chain[0].pk).update(project=other)
    verdict = verify_chain()
    assert (verdict.state, verdict.row, verdict.rows) == (ChainState.CHANGED, chain[0].pk, 0)


def test_missing_rows_in_the_middle_are_a_gap(people: People, chain: list[AuditEvent]) -> None:
    last = append(people)
    delete(chain[1], chain[2])
    verdict = verify_chain()
    assert (verdict.state, verdict.missing, verdict.row) == (ChainState.GAP, (2, 3), last.pk)
    assert verdict.message == f"Rows before row {last.pk} are missing, with the numbers 2 to 3."


def test_a_missing_first_row_is_a_gap(chain: list[AuditEvent]) -> None:
    delete(chain[0])
    verdict = verify_chain()
    assert (verdict.state, verdict.missing, verdict.row) == (ChainState.GAP, (1, 1), chain[1].pk)


def test_renumbered_rows_after_a_deleted_one_are_changed(chain: list[AuditEvent]) -> None:
    delete(chain[1])
    AuditEvent.objects.filter(pk=chain[2].pk).update(number=F("number") - 1)
    assert (verify_chain().state, verify_chain().row) == (ChainState.CHANGED, chain[2].pk)


def test_two_swapped_rows_are_changed(chain: list[AuditEvent]) -> None:
    for number, event in ((1000, chain[0]), (1, chain[1]), (2, chain[0])):
        AuditEvent.objects.filter(pk=event.pk).update(number=number)
    assert (verify_chain().state, verify_chain().row) == (ChainState.CHANGED, chain[1].pk)


def test_missing_last_rows_are_a_truncation(chain: list[AuditEvent]) -> None:
    delete(chain[1], chain[2])
    verdict = verify_chain()
    assert (verdict.state, verdict.missing, verdict.rows) == (ChainState.TRUNCATED, (2, 3), 1)
    assert verdict.row == chain[0].pk + 1
    assert "the head names the row with number 3" in verdict.message


def test_a_head_rewritten_without_the_key_is_found(chain: list[AuditEvent]) -> None:
    delete(chain[2])
    set_head(chain[1], with_key=False)
    assert verify_chain().state == ChainState.HEAD_CHANGED


def test_rows_after_a_rewritten_head_do_not_make_it_valid(people: People, chain: list[AuditEvent]) -> None:
    delete(chain[2])
    set_head(chain[1], with_key=False)
    assert append(people).number == 3
    assert verify_chain().state == ChainState.HEAD_CHANGED


def test_an_anchor_shows_a_head_that_was_rewritten_with_the_key(
    chain: list[AuditEvent], anchor: Anchor
) -> None:
    delete(chain[2])
    set_head(chain[1], with_key=True)
    assert verify_chain().holds, "nothing inside of the database shows it"
    verdict = verify_chain([anchor])
    assert (verdict.state, verdict.missing) == (ChainState.TRUNCATED, (3, 3))
    assert "the copy names the row with number 3" in verdict.message


def test_an_anchor_shows_a_row_that_was_replaced_with_the_key(
    people: People, chain: list[AuditEvent], anchor: Anchor
) -> None:
    delete(chain[2])
    set_head(chain[1], with_key=True)
    forged = append(people)
    assert verify_chain().holds, "nothing inside of the database shows it"
    verdict = verify_chain([anchor])
    assert (verdict.state, verdict.row) == (ChainState.CHANGED, forged.pk)


def test_an_older_head_of_the_same_chain_is_found(people: People, chain: list[AuditEvent]) -> None:
    older = AuditHead.objects.values("number", "hash", "mac").get(pk=HEAD_ID)
    append(people)
    AuditHead.objects.filter(pk=HEAD_ID).update(**older)
    assert verify_chain().state == ChainState.HEAD_CHANGED


def test_an_anchor_shows_an_older_head_with_the_rows_of_its_time(
    people: People, chain: list[AuditEvent]
) -> None:
    older = AuditHead.objects.values("number", "hash", "mac").get(pk=HEAD_ID)
    newest = append(people)
    delete(newest)
    AuditHead.objects.filter(pk=HEAD_ID).update(**older)
    assert verify_chain().holds, "nothing inside of the database shows it"
    assert verify_chain([Anchor(newest.number, newest.hash, "the copy")]).state == ChainState.TRUNCATED


@pytest.mark.parametrize("then", ["nothing", "append"])
def test_a_deleted_head_is_found(people: People, chain: list[AuditEvent], then: str) -> None:
    AuditHead.objects.all().delete()
    if then == "append":
        append(people)
    assert verify_chain().state == ChainState.HEAD_CHANGED


def test_an_anchor_shows_that_everything_was_deleted(chain: list[AuditEvent], anchor: Anchor) -> None:
    delete(*chain)
    AuditHead.objects.all().delete()
    assert verify_chain([anchor]).missing == (1, 3)


@pytest.mark.parametrize("then", ["nothing", "append"])
def test_a_lost_key_is_told_apart_from_changes(
    people: People, chain: list[AuditEvent], settings: object, then: str
) -> None:
    settings.SECRET_KEY = OTHER_SECRET  # type: ignore[attr-defined]
    if then == "append":
        append(people)
    verdict = verify_chain()
    assert (verdict.state, verdict.row) == (ChainState.OTHER_KEY, None)
    assert "was made with another key" in verdict.message


def test_the_command_names_the_way_on(
    chain: list[AuditEvent], settings: object, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.SECRET_KEY = OTHER_SECRET  # type: ignore[attr-defined]
    code, printed = verify_at_the_terminal(capsys)
    assert code == 1
    assert f"Put the key that this database had into {settings.TRAINYARD_SECRET_KEY_FILE}." in printed  # type: ignore[attr-defined]
    assert "audit seal --reason" in printed


def test_missing_rows_show_without_the_key(chain: list[AuditEvent], settings: object) -> None:
    settings.SECRET_KEY = OTHER_SECRET  # type: ignore[attr-defined]
    delete(chain[1])
    assert verify_chain().missing == (2, 2)


def test_a_head_that_pretends_to_have_another_key_was_changed(chain: list[AuditEvent]) -> None:
    AuditHead.objects.update(key="f" * 16, mac="0" * 64)
    assert verify_chain().state == ChainState.HEAD_CHANGED


def test_a_row_that_is_appended_during_the_verification_is_no_error(
    people: People, chain: list[AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    row_hash = audit_chain.row_hash

    def appending(event: AuditEvent) -> str:
        monkeypatch.setattr(audit_chain, "row_hash", row_hash)
        append(people)
        return row_hash(event)

    monkeypatch.setattr(audit_chain, "row_hash", appending)
    assert verify_chain().rows == len(chain) + 1
    assert verify_chain().holds
