from datetime import timedelta

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from jobs import program
from webapp.management.installation_command import InstallationCommand
from webapp.ops.durations import parse_duration
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.keys import release_key, secret_key
from webapp.ops.lock import HomeLock


class Command(InstallationCommand):
    help = (
        "Replaces the secret key. Sessions that the former one has signed stay valid for a while, the audit "
        "log stays verifiable, and secrets in the database are encrypted again. Trainyard may be running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--prepare",
            action="store_true",
            help="only add the next key to the file, to copy it to other machines first",
        )
        what.add_argument(
            "--forget", action="store_true", help="remove former keys at once, such as a key that has leaked"
        )
        parser.add_argument(
            "--releases",
            action="store_true",
            help="replace release.key instead, with which releases are signed for prediction servers",
        )
        parser.add_argument(
            "--overlap",
            default="14d",
            help="how long sessions of the former key stay valid, such as 14d or 0m",
        )

    def handle(self, *, prepare: bool, forget: bool, releases: bool, overlap: str, **_: object) -> None:
        duration = parse_duration(overlap)
        if duration is None:
            raise CommandError(f"--overlap {overlap!r}: give a number and m, h or d, such as 14d")
        home = Home(settings.TRAINYARD_HOME)
        home.create()
        # Not the lock of `up`, which may run.
        lock = HomeLock(home.run / "keys.lock")
        try:
            lock.acquire()
        except OpsError as error:
            raise CommandError("Another rotate-keys runs on this home. Wait for it.") from error
        try:
            if releases:
                self._rotate_release_key(prepare=prepare, forget=forget)
            elif prepare:
                self._prepare()
            elif forget:
                self._forget()
            else:
                self._rotate(duration)
        except OpsError as error:
            raise CommandError(str(error)) from error
        finally:
            lock.release()

    def _prepare(self) -> None:
        name = secret_key.prepare()
        self.stdout.write(
            f"{settings.TRAINYARD_SECRET_KEY_FILE} has the next key, {name[:8]}. Copy the file to every web "
            f"server and scheduler, and run `{program.command_line('rotate-keys')}` then."
        )

    def _forget(self) -> None:
        self._describe_lost(secret_key.forget())
        self.stdout.write(
            f"{settings.TRAINYARD_SECRET_KEY_FILE} has no former key any more. Copy the file to every web "
            "server and scheduler: those that have the earlier file still accept it."
        )

    def _rotate(self, overlap: timedelta) -> None:
        done = secret_key.rotate(overlap)
        self._describe_lost(done.lost)
        self.stdout.write(
            f"The key {done.key[:8]} signs now; sessions of the key {done.former[:8]} stay valid until "
            f"{done.until:%Y-%m-%d %H:%M} UTC. Running parts that read {settings.TRAINYARD_SECRET_KEY_FILE} "
            "use it within 15 seconds. Copy the file to every other machine with a web server or scheduler, "
            "and make a backup."
        )
        self.stdout.write(
            "Not replaced: release.key (`--releases`), tokens of the API, credentials of prediction servers "
            "(`serving-token NAME --rotate`), passwords, and those of database, broker and object storage."
        )

    def _rotate_release_key(self, *, prepare: bool, forget: bool) -> None:
        public = Home(settings.TRAINYARD_HOME).release_key_file
        copy = f"Copy {public} to every prediction server on another machine, in the place of its file"
        if prepare:
            name = release_key.prepare()
            self.stdout.write(f"{public} has the next key, {name}. {copy}; a restart is not needed.")
            return
        invalid = release_key.forget() if forget else release_key.rotate()
        if invalid:
            self.stderr.write(f"{invalid} releases of a key that is gone stay as they are.")
        if forget:
            self.stdout.write(f"{public} has no former key any more. {copy}, and restart them.")
        else:
            self.stdout.write(f"Releases are signed with a new key. {copy}, if you have not done so.")

    def _describe_lost(self, lost: tuple[str, ...]) -> None:
        for what in lost:
            self.stderr.write(
                f"{what} cannot be decrypted: their key was lost before. They stay as they are."
            )
