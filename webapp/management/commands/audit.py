import sys

from django.core.management.base import BaseCommand, CommandParser

from jobs.actions import audit
from jobs.queries.audit import count


class Command(BaseCommand):
    help = "Verify the audit log's hash chain; exits with status 1 and names the first invalid row."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["verify"])

    def handle(self, *, what: str, **options: object) -> None:
        broken = audit.verify()
        if broken is not None:
            self.stderr.write(f"The audit chain is broken at row {broken}.")
            sys.exit(1)
        self.stdout.write(f"The audit chain is valid: {count()} rows.")
