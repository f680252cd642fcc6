"""Verifies the audit chain by the old rule and makes it again by the new one.

A chain that does not verify is kept as it is: a row after it seals it with the result.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from django.db import migrations, models
from django.utils import timezone
from django.utils.crypto import salted_hmac

# As they were when this migration was written: later changes of the rule must not change it.
GENESIS = "0" * 64
HEAD_ID = 1
BATCH = 1000


def upgrade(apps: Any, schema_editor: Any) -> None:
    event_model, head_model = apps.get_model("jobs", "AuditEvent"), apps.get_model("jobs", "AuditHead")
    head = head_model.objects.filter(pk=HEAD_ID).first()
    if head is None and not event_model.objects.exists():
        return
    broken = _first_broken(event_model, head)
    last, digest = _number(event_model, hash_again=broken is None)
    if broken is None:
        detail: dict[str, Any] = {"found": "valid", "rows": last.number if last else 0, "head": head.hash}
    else:
        detail = {
            "found": "changed",
            "message": f"Row {broken} was the first that did not verify.",
            "row": broken,
            "rows": last.number if last else 0,
            "digest": digest,
            "releases": 0,
            "accepted": False,
            "reason": "upgrade",
        }
    row = event_model(
        pk=(last.pk if last else 0) + 1,
        number=(last.number if last else 0) + 1,
        time=timezone.now(),
        action="audit.upgrade" if broken is None else "audit.seal",
        target="audit",
        detail=detail,
        previous_hash=last.hash if last else GENESIS,
    )
    row.hash = _hash(row)
    row.save(force_insert=True)
    head_model.objects.update_or_create(
        pk=HEAD_ID,
        defaults={
            "number": row.number,
            "hash": row.hash,
            "mac": _hmac("trainyard.audit.head", f"{row.number} {row.hash}"),
            "key": _hmac("trainyard.audit.key", "name")[:16],
        },
    )
    if schema_editor.connection.vendor == "postgresql":
        # The next operation alters the table, which waiting checks of foreign keys do not allow.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        schema_editor.execute("SET CONSTRAINTS ALL DEFERRED")


def _batches(event_model: Any) -> Iterator[list[Any]]:
    """Yield all rows in the order of their ids, a batch in memory at a time."""
    last = 0
    while rows := list(event_model.objects.filter(pk__gt=last).order_by("pk")[:BATCH]):
        last = rows[-1].pk
        yield rows


def _first_broken(event_model: Any, head: Any) -> int | None:
    """Return the id of the first row that does not verify by the old rule; None if the chain is valid."""
    previous, count, last_id = GENESIS, 0, 0
    for rows in _batches(event_model):
        for row in rows:
            if row.previous_hash != previous or row.hash != _old_hash(row):
                return int(row.pk)
            previous, count, last_id = row.hash, count + 1, row.pk
    # The column is the number of the last row from now on; it was the count of rows.
    holds = head is not None and (head.hash, head.number) == (previous, count)
    return None if holds else last_id + 1


def _number(event_model: Any, *, hash_again: bool) -> tuple[Any, str]:
    """Number all rows; return the last one and the digest of all."""
    number, previous, last = 0, GENESIS, None
    digest = hashlib.sha256()
    fields = ["number", "previous_hash", "hash"] if hash_again else ["number"]
    for rows in _batches(event_model):
        for row in rows:
            number += 1
            row.number = number
            if hash_again:
                row.previous_hash = previous
                row.hash = previous = _hash(row)
            digest.update(_text([*_values(row), row.hash]).encode() + b"\n")
        event_model.objects.bulk_update(rows, fields, batch_size=100)
        last = rows[-1]
    return last, digest.hexdigest()


def _old_hash(row: Any) -> str:
    body = [
        row.previous_hash,
        row.time.isoformat(),
        row.actor_id,
        row.action,
        row.target,
        _floats(row.detail),
    ]
    return _hmac("trainyard.audit", _text(body))


def _hash(row: Any) -> str:
    return _hmac("trainyard.audit.row", _text(_values(row)))


def _values(row: Any) -> list[Any]:
    return [
        row.pk,
        row.number,
        row.time.astimezone(UTC).isoformat(),
        row.actor_id,
        row.action,
        row.target,
        row.project_id,
        _floats(row.detail),
        row.previous_hash,
    ]


def _floats(detail: Any) -> Any:
    return json.loads(json.dumps(detail), parse_int=float)


def _text(values: list[Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _hmac(salt: str, text: str) -> str:
    return salted_hmac(salt, text, algorithm="sha256").hexdigest()


class Migration(migrations.Migration):
    dependencies = [("jobs", "0024_audit_numbers")]

    operations = [
        migrations.RunPython(upgrade, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="auditevent",
            name="number",
            field=models.PositiveBigIntegerField(unique=True),
        ),
    ]
