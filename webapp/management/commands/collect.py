from argparse import ArgumentParser

from django.core.management.base import CommandError
from django.template.defaultfilters import filesizeformat

from jobs.actions.storage.collection import collect
from jobs.errors import NotOwned
from webapp.management.installation_command import InstallationCommand


class Command(InstallationCommand):
    help = (
        "Deletes files that nothing refers to, and objects that were deleted more than seven days ago. "
        "Trainyard may be running; its scheduler does the same every hour."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only report the files")

    def handle(self, *, dry_run: bool, **_: object) -> None:
        try:
            collected = collect(dry_run=dry_run)
        except NotOwned as error:
            raise CommandError(error.message) from error
        if collected is None:
            raise CommandError("Another process is collecting. Try again when it has ended.")
        lines = (
            ("deletions whose seven days are over", collected.deletions, None),
            ("files without a reference", collected.files, collected.bytes),
            (
                "checkpoint folders of jobs that no longer exist",
                collected.checkpoints,
                collected.checkpoint_bytes,
            ),
            ("files in the trash for more than a day", collected.erased, collected.erased_bytes),
        )
        self.stdout.write("Would be deleted:" if dry_run else "Deleted:")
        for name, count, size in lines:
            size_text = "" if size is None else f" ({_size(size)})"
            self.stdout.write(f"  {count} {name}{size_text}")
        if collected.waiting:
            waiting = f"{collected.waiting} files without a reference ({_size(collected.waiting_bytes)})"
            self.stdout.write(f"Kept: {waiting}, stored in the last day.")


def _size(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")
