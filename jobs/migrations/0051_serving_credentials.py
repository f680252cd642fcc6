"""Takes the scope `serve` from the tokens of people, with an audit row for each, and marks replicas that stop."""

import json
from datetime import UTC
from typing import Any

from django.db import migrations, models
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

# As they were when this migration was written: later changes of the rule must not change it.
GENESIS = "0" * 64
HEAD_ID = 1
OLD_NAME, NEW_NAME = "service:serve", "local"


def take_scope_from_people(apps: Any, schema_editor: Any) -> None:
    """Leave `serve` to the credentials of prediction servers.

    Clients that still predict with a token from before the scope `predict` keep doing so until its time ends:
    that is a column of its own. The installation's own token becomes the credential of its server.
    """
    tokens = apps.get_model("jobs", "ApiToken")
    # Few rows, and SQLite cannot search a JSON list.
    for token in tokens.objects.filter(user__is_service=False).select_related("user").order_by("pk"):
        if "serve" not in token.scopes:
            continue
        token.scopes = [scope for scope in token.scopes if scope != "serve"]
        token.save(update_fields=["scopes"])
        detail = {
            "owner": token.user.username,
            "prefix": token.prefix,
            "removed": "serve",
            "scopes": token.scopes,
            "reason": "releases and reports are for the credentials of prediction servers",
        }
        _append(apps, "token.scope_removed", f"apitoken:{token.pk}", detail)
    tokens.objects.filter(user__is_service=True, name=OLD_NAME).update(name=NEW_NAME)


def _append(apps: Any, action: str, target: str, detail: dict[str, Any]) -> None:
    """Append one row to the audit chain."""
    event_model, head_model = apps.get_model("jobs", "AuditEvent"), apps.get_model("jobs", "AuditHead")
    last = event_model.objects.order_by("number").last()
    head = head_model.objects.filter(pk=HEAD_ID).first()
    if head is None:
        head = head_model(pk=HEAD_ID, number=last.number if last else 0, hash=last.hash if last else GENESIS)
        # A log without its head is one whose head was deleted: it must not become authentic by this row.
        head.mac = "" if last else _head_mac(head)
    is_authentic = constant_time_compare(head.mac, _head_mac(head))
    last_id = event_model.objects.aggregate(last=models.Max("pk"))["last"] or 0
    row = event_model(
        pk=max(last_id + 1, head.number + 1),
        number=head.number + 1,
        time=timezone.now(),
        action=action,
        target=target,
        detail=detail,
        previous_hash=head.hash,
    )
    row.hash = _hmac("trainyard.audit.row", _text(row))
    row.save(force_insert=True)
    head.number, head.hash = row.number, row.hash
    head.mac = _head_mac(head) if is_authentic else ""
    if is_authentic:
        head.key = _hmac("trainyard.audit.key", "name")[:16]
    head.save()


def _head_mac(head: Any) -> str:
    return _hmac("trainyard.audit.head", f"{head.number} {head.hash}")


def _text(row: Any) -> str:
    values = [
        row.pk,
        row.number,
        row.time.astimezone(UTC).isoformat(),
        row.actor_id,
        row.action,
        row.target,
        row.project_id,
        json.loads(json.dumps(row.detail), parse_int=float),
        row.previous_hash,
    ]
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _hmac(salt: str, text: str) -> str:
    return salted_hmac(salt, text, algorithm="sha256").hexdigest()


class Migration(migrations.Migration):
    dependencies = [("jobs", "0050_reachability")]

    operations = [
        migrations.AddField(
            "replica",
            "stopped",
            models.BooleanField(default=False, help_text="its last report was that it stops"),
        ),
        # Back: the program before this one reads tokens without the scope as it reads any others.
        migrations.RunPython(take_scope_from_people, migrations.RunPython.noop),
    ]
