import sys
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from jobs import program
from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.errors import Conflict
from jobs.queries import compatibility
from jobs.queries.audit import audit_anchors, audit_verification
from jobs.queries.audit.audit_verification import ChainState
from webapp.ops.backup_file import manifest_if_backup
from webapp.ops.errors import OpsError

NOT_READ = 2
"""The exit status if the log could not be verified: it may be valid."""


class Command(BaseCommand):
    help = (
        "`verify` checks the audit log's hash chain, and ends with status 1 if it is not valid. `anchor` "
        "prints its last row, to be kept elsewhere. `seal` accepts a chain that is not valid, and begins "
        "a new one after it."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["verify", "anchor", "seal"])
        parser.add_argument(
            "--anchor",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="verify: also compare with the output of `audit anchor`, with a backup, or with a log",
        )
        parser.add_argument("--reason", default="", help="seal: why the chain is accepted as it is")

    def handle(self, *, what: str, anchor: list[Path], reason: str, **options: object) -> None:
        try:
            # This process may have begun with a key that was rotated, or is being rotated.
            own_installation.follow_key()
            if what == "anchor":
                self.stdout.write(audit_anchors.current_anchor().model_dump_json())
            elif what == "seal":
                self._seal(reason.strip())
            else:
                self._verify(anchor)
        except DatabaseError as error:
            raise CommandError(
                f"The audit log cannot be read: {error}. If the database is older than this program, "
                f"`{program.command_line('up')}` upgrades it.",
                returncode=NOT_READ,
            ) from error

    def _verify(self, files: list[Path]) -> None:
        verification = audit_verification.verify_chain(
            [anchor for file in files for anchor in _anchors(file)]
        )
        if not verification.holds:
            self.stderr.write(verification.message)
            self.stderr.write(f"Result: {verification.state}, {verification.rows} rows read.")
            self.stderr.write(_way_on(verification.state))
            sys.exit(1)
        for line in (verification.message, *verification.notes):
            self.stdout.write(line)

    def _seal(self, reason: str) -> None:
        if not reason:
            raise CommandError("--reason is missing: enter why the chain is accepted as it is.")
        try:
            compatibility.require()
            seal = audit.seal_chain(reason, by=None)
        except (Conflict, compatibility.Incompatible) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Sealed. The result before was: {seal.message}")


def _way_on(state: ChainState) -> str:
    seal = program.command_line('audit seal --reason "…"')
    if state == ChainState.OTHER_KEY:
        return (
            f"Put the key that this database had into {settings.TRAINYARD_SECRET_KEY_FILE}. If it is lost, "
            f"accept the log as it is by `{seal}`."
        )
    return f"If the cause is known, accept the log as it is by `{seal}`."


def _anchors(file: Path) -> list[audit_anchors.Anchor]:
    try:
        text = manifest_if_backup(file) or file.read_text(errors="replace")
    except (OSError, OpsError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
    anchors = audit_anchors.read_anchors(text, str(file))
    if not anchors:
        raise CommandError(f"{file} contains no anchor of the audit log.")
    return anchors
